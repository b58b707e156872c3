package coord

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// openClient opens the client of a store whose time is what its clock is told.
func openClient(t *testing.T, c *redistest.Cluster, prefix string, partitions int) *client.Client {
	t.Helper()
	cl, err := client.Open(t.Context(), client.Config{
		Addresses: c.Addrs(), Prefix: prefix, Partitions: partitions, Durability: client.DurabilityReplica,
		CacheBytes: 1 << 20, Timeout: 5 * time.Second, OnStallChange: func(error) {}, UsesCallerTime: true,
	})
	must(t, err)
	t.Cleanup(func() { cl.Close(func() error { return nil }) })
	return cl
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Permits of all workers are never more than the limit; what one gives back, or does
// not use, is for others; those of a worker that dies count as used.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	cl := openClient(t, c, "limits", 3)
	s := NewSharedLimits(cl)
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	cl.ScriptClock().AdvanceTo(begin)
	beat := func(worker string, r HeartbeatRequest) HeartbeatReply {
		t.Helper()
		r.WorkerName, r.ExpiresAfter, r.Limits = worker, 3*time.Second, CrawlLimits{MaxPages: 10, MaxReceivedBytes: 1000, MaxWorkingTime: 5 * time.Second}
		m, err := s.Heartbeat(t.Context(), r)
		must(t, err)
		again, err := s.Heartbeat(t.Context(), r) // the answer may have been lost
		if err != nil && !r.Leaving || !r.Leaving && again != m && again.GrantedPages == m.GrantedPages {
			t.Errorf("%s: %+v, and again %+v, %v", worker, m, again, err)
		}
		return again
	}
	wantReply := func(m HeartbeatReply, workers int, permits int64) {
		t.Helper()
		if m.WorkerCount != workers || m.GrantedPages != permits {
			t.Errorf("%+v, want %d workers and %d permits", m, workers, permits)
		}
	}
	wantReply(beat("a", HeartbeatRequest{Joining: true, TotalWantedPages: 2}), 1, 2)
	wantReply(beat("b", HeartbeatRequest{Joining: true, TotalWantedPages: 2}), 2, 2)
	wantReply(beat("a", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 2}), 2, 5)  // two of the six that are left, and again one of four
	wantReply(beat("b", HeartbeatRequest{TotalWantedPages: 20, VisitedPagesSinceJoin: 2}), 2, 4) // one of three, one of two
	wantReply(beat("a", HeartbeatRequest{TotalWantedPages: 3, VisitedPagesSinceJoin: 2}), 2, 3)  // gives two back
	wantReply(beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 4}), 2, 6)
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 999}); m.ByteLimitReached || m.PageLimitReached || m.TimeLimitReached {
		t.Errorf("%+v: nothing is reached yet", m)
	}
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000}); !m.ByteLimitReached {
		t.Errorf("%+v: the bytes are", m)
	}
	cl.ScriptClock().AdvanceTo(begin.Add(2 * time.Second))
	beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000})
	cl.ScriptClock().AdvanceTo(begin.Add(4 * time.Second)) // a was not heard of for four
	wantReply(beat("b", HeartbeatRequest{TotalWantedPages: 20, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000}), 1, 7)
	if _, err := s.Heartbeat(t.Context(), HeartbeatRequest{WorkerName: "a", ExpiresAfter: 3 * time.Second, TotalWantedPages: 3, VisitedPagesSinceJoin: 3}); !errors.Is(err, ErrWorkerExpired) {
		t.Errorf("a is answered with %v", err)
	}
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000}); !m.PageLimitReached {
		t.Errorf("%+v: nine pages were visited, and another may have been", m)
	}
	cl.ScriptClock().AdvanceTo(begin.Add(6 * time.Second))
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000}); !m.TimeLimitReached {
		t.Errorf("%+v: it was worked for six seconds", m)
	}
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000, ResetCountsIfLimitReached: true}); m.PageLimitReached || m.ByteLimitReached || m.TimeLimitReached {
		t.Errorf("%+v: all begins anew", m)
	}
}

// A report that arrives after a later one changes nothing: permits that were granted since
// stay the worker's, and what it has used is not taken for unused.
func TestHeartbeatOutOfOrder(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	cl := openClient(t, c, "limits", 1)
	s := NewSharedLimits(cl)
	cl.ScriptClock().AdvanceTo(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	granted := map[string]int64{}
	beat := func(worker string, r HeartbeatRequest) {
		t.Helper()
		r.WorkerName, r.ExpiresAfter, r.Limits = worker, 3*time.Second, CrawlLimits{MaxPages: 10}
		m, err := s.Heartbeat(t.Context(), r)
		must(t, err)
		granted[worker] = m.GrantedPages
	}
	beat("a", HeartbeatRequest{Seq: 1, Joining: true, TotalWantedPages: 2})
	early := HeartbeatRequest{Seq: 2, TotalWantedPages: 3, VisitedPagesSinceJoin: 1}
	beat("a", HeartbeatRequest{Seq: 3, TotalWantedPages: 5, VisitedPagesSinceJoin: 2})
	beat("a", HeartbeatRequest{Seq: 4, TotalWantedPages: 6, VisitedPagesSinceJoin: 4})
	before := granted["a"]
	if beat("a", early); granted["a"] != before {
		t.Errorf("%d are permitted when an early report has arrived late, %d were", granted["a"], before)
	}
	beat("b", HeartbeatRequest{Seq: 1, Joining: true, TotalWantedPages: 9})
	for i := range int64(9) {
		beat("b", HeartbeatRequest{Seq: 2 + i, TotalWantedPages: 9})
	}
	if all := before + granted["b"]; all > 10 {
		t.Errorf("%d pages are permitted, of 10", all)
	}
}
