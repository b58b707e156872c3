package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// Permits of all workers are never more than the limit; what one gives back, or does
// not use, is for others; those of a worker that dies count as used.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	s := openCallerClock(t, c, newPrefix(), Options{Partitions: 3})
	t.Cleanup(func() { s.Close() })
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.client.Clock().AdvanceTo(begin)
	beat := func(worker string, r SharedLimitsHeartbeatRequest) SharedLimitsHeartbeatReply {
		t.Helper()
		r.WorkerName, r.ExpiresAfter, r.Limits = worker, 3*time.Second, SharedCrawlLimits{MaxPages: 10, MaxReceivedBytes: 1000, MaxWorkingTime: 5 * time.Second}
		m, err := s.Heartbeat(t.Context(), r)
		must(t, err)
		again, err := s.Heartbeat(t.Context(), r) // the answer may have been lost
		if err != nil && !r.Leaving || !r.Leaving && again != m && again.GrantedPages == m.GrantedPages {
			t.Errorf("%s: %+v, and again %+v, %v", worker, m, again, err)
		}
		return again
	}
	wantReply := func(m SharedLimitsHeartbeatReply, workers int, permits int64) {
		t.Helper()
		if m.WorkerCount != workers || m.GrantedPages != permits {
			t.Errorf("%+v, want %d workers and %d permits", m, workers, permits)
		}
	}
	wantReply(beat("a", SharedLimitsHeartbeatRequest{Joining: true, TotalWantedPages: 2}), 1, 2)
	wantReply(beat("b", SharedLimitsHeartbeatRequest{Joining: true, TotalWantedPages: 2}), 2, 2)
	wantReply(beat("a", SharedLimitsHeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 2}), 2, 5)  // two of the six that are left, and again one of four
	wantReply(beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 20, VisitedPagesSinceJoin: 2}), 2, 4) // one of three, one of two
	wantReply(beat("a", SharedLimitsHeartbeatRequest{TotalWantedPages: 3, VisitedPagesSinceJoin: 2}), 2, 3)  // gives two back
	wantReply(beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 4}), 2, 6)
	if m := beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 999}); m.ByteLimitReached || m.PageLimitReached || m.TimeLimitReached {
		t.Errorf("%+v: nothing is reached yet", m)
	}
	if m := beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000}); !m.ByteLimitReached {
		t.Errorf("%+v: the bytes are", m)
	}
	s.client.Clock().AdvanceTo(begin.Add(2 * time.Second))
	beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000})
	s.client.Clock().AdvanceTo(begin.Add(4 * time.Second)) // a was not heard of for four
	wantReply(beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 20, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000}), 1, 7)
	if _, err := s.Heartbeat(t.Context(), SharedLimitsHeartbeatRequest{WorkerName: "a", ExpiresAfter: 3 * time.Second, TotalWantedPages: 3, VisitedPagesSinceJoin: 3}); !errors.Is(err, ErrWorkerExpired) {
		t.Errorf("a is answered with %v", err)
	}
	if m := beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000}); !m.PageLimitReached {
		t.Errorf("%+v: nine pages were visited, and another may have been", m)
	}
	s.client.Clock().AdvanceTo(begin.Add(6 * time.Second))
	if m := beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000}); !m.TimeLimitReached {
		t.Errorf("%+v: it was worked for six seconds", m)
	}
	if m := beat("b", SharedLimitsHeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000, ResetCountsIfLimitReached: true}); m.PageLimitReached || m.ByteLimitReached || m.TimeLimitReached {
		t.Errorf("%+v: all begins anew", m)
	}
}

// A report that arrives after a later one changes nothing: permits that were granted since
// stay the worker's, and what it has used is not taken for unused.
func TestHeartbeatOutOfOrder(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	s := openCallerClock(t, c, newPrefix(), Options{Partitions: 1})
	t.Cleanup(func() { s.Close() })
	s.client.Clock().AdvanceTo(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	granted := map[string]int64{}
	beat := func(worker string, r SharedLimitsHeartbeatRequest) {
		t.Helper()
		r.WorkerName, r.ExpiresAfter, r.Limits = worker, 3*time.Second, SharedCrawlLimits{MaxPages: 10}
		granted[worker] = must1(s.Heartbeat(t.Context(), r)).GrantedPages
	}
	beat("a", SharedLimitsHeartbeatRequest{Seq: 1, Joining: true, TotalWantedPages: 2})
	early := SharedLimitsHeartbeatRequest{Seq: 2, TotalWantedPages: 3, VisitedPagesSinceJoin: 1}
	beat("a", SharedLimitsHeartbeatRequest{Seq: 3, TotalWantedPages: 5, VisitedPagesSinceJoin: 2})
	beat("a", SharedLimitsHeartbeatRequest{Seq: 4, TotalWantedPages: 6, VisitedPagesSinceJoin: 4})
	before := granted["a"]
	if beat("a", early); granted["a"] != before {
		t.Errorf("%d are permitted when an early report has arrived late, %d were", granted["a"], before)
	}
	beat("b", SharedLimitsHeartbeatRequest{Seq: 1, Joining: true, TotalWantedPages: 9})
	for i := range int64(9) {
		beat("b", SharedLimitsHeartbeatRequest{Seq: 2 + i, TotalWantedPages: 9})
	}
	if all := before + granted["b"]; all > 10 {
		t.Errorf("%d pages are permitted, of 10", all)
	}
}
