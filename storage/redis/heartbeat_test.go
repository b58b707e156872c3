package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// Permits of all workers are never more than the limit; what one gives back, or does
// not use, is for others; those of a worker that dies count as used.
func TestMuster(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1, 1)
	s := openCallerClock(t, c, newPrefix(), Options{Partitions: 3})
	t.Cleanup(func() { s.Close() })
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.clock.advance(begin)
	report := func(worker string, r Report) Muster {
		t.Helper()
		r.Worker, r.Patience, r.Limits = worker, 3*time.Second, Limits{Pages: 10, Bytes: 1000, Time: 5 * time.Second}
		m, err := s.Muster(t.Context(), r)
		must(t, err)
		again, err := s.Muster(t.Context(), r) // the answer may have been lost
		if err != nil && !r.Leaves || !r.Leaves && again != m && again.Permits == m.Permits {
			t.Errorf("%s: %+v, and again %+v, %v", worker, m, again, err)
		}
		return again
	}
	want := func(m Muster, workers int, permits int64) {
		t.Helper()
		if m.Workers != workers || m.Permits != permits {
			t.Errorf("%+v, want %d workers and %d permits", m, workers, permits)
		}
	}
	want(report("a", Report{Joins: true, Permits: 2}), 1, 2)
	want(report("b", Report{Joins: true, Permits: 2}), 2, 2)
	want(report("a", Report{Permits: 6, Used: 2}), 2, 5)  // two of the six that are left, and again one of four
	want(report("b", Report{Permits: 20, Used: 2}), 2, 4) // one of three, one of two
	want(report("a", Report{Permits: 3, Used: 2}), 2, 3)  // gives two back
	want(report("b", Report{Permits: 6, Used: 4}), 2, 6)
	if m := report("b", Report{Permits: 6, Used: 6, Received: 999}); m.Bytes || m.Pages || m.Time {
		t.Errorf("%+v: nothing is reached yet", m)
	}
	if m := report("b", Report{Permits: 6, Used: 6, Received: 1000}); !m.Bytes {
		t.Errorf("%+v: the bytes are", m)
	}
	s.clock.advance(begin.Add(2 * time.Second))
	report("b", Report{Permits: 6, Used: 6, Received: 1000})
	s.clock.advance(begin.Add(4 * time.Second)) // a was not heard of for four
	want(report("b", Report{Permits: 20, Used: 6, Received: 1000}), 1, 7)
	if _, err := s.Muster(t.Context(), Report{Worker: "a", Patience: 3 * time.Second, Permits: 3, Used: 3}); !errors.Is(err, ErrGone) {
		t.Errorf("a is answered with %v", err)
	}
	if m := report("b", Report{Permits: 7, Used: 7, Received: 1000}); !m.Pages {
		t.Errorf("%+v: nine pages were visited, and another may have been", m)
	}
	s.clock.advance(begin.Add(6 * time.Second))
	if m := report("b", Report{Permits: 7, Used: 7, Received: 1000}); !m.Time {
		t.Errorf("%+v: it was worked for six seconds", m)
	}
	if m := report("b", Report{Permits: 7, Used: 7, Received: 1000, Renews: true}); m.Pages || m.Bytes || m.Time {
		t.Errorf("%+v: all begins anew", m)
	}
}

// A report that arrives after a later one changes nothing: permits that were granted since
// stay the worker's, and what it has used is not taken for unused.
func TestMusterOutOfOrder(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, 1, 1)
	s := openCallerClock(t, c, newPrefix(), Options{Partitions: 1})
	t.Cleanup(func() { s.Close() })
	s.clock.advance(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	granted := map[string]int64{}
	report := func(worker string, r Report) {
		t.Helper()
		r.Worker, r.Patience, r.Limits = worker, 3*time.Second, Limits{Pages: 10}
		granted[worker] = must1(s.Muster(t.Context(), r)).Permits
	}
	report("a", Report{Number: 1, Joins: true, Permits: 2})
	early := Report{Number: 2, Permits: 3, Used: 1}
	report("a", Report{Number: 3, Permits: 5, Used: 2})
	report("a", Report{Number: 4, Permits: 6, Used: 4})
	before := granted["a"]
	if report("a", early); granted["a"] != before {
		t.Errorf("%d are permitted when an early report has arrived late, %d were", granted["a"], before)
	}
	report("b", Report{Number: 1, Joins: true, Permits: 9})
	for i := range int64(9) {
		report("b", Report{Number: 2 + i, Permits: 9})
	}
	if all := before + granted["b"]; all > 10 {
		t.Errorf("%d pages are permitted, of 10", all)
	}
}
