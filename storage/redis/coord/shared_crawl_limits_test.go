package coord

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// openClient opens the client of a store whose time is set by ScriptClock.AdvanceTo.
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

// The pages granted to all workers never exceed the limit. Pages that a worker returns, or leaves
// unused when it leaves, go to the others. Those of a worker that expires count as visited.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 1)
	cl := openClient(t, c, "limits", 3)
	s := NewSharedLimits(cl)
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	cl.ScriptClock().AdvanceTo(begin)
	beat := func(worker string, r HeartbeatRequest) HeartbeatReply {
		t.Helper()
		r.WorkerName, r.ExpiresAfter, r.Limits = worker, 3*time.Second,
			CrawlLimits{MaxPages: 10, MaxReceivedBytes: 1000, MaxWorkingTime: 5 * time.Second}
		m, err := s.Heartbeat(t.Context(), r)
		must(t, err)
		again, err := s.Heartbeat(t.Context(), r) // as after a lost reply
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
	// Six pages are left: the first call grants two, the repeated one grants one of the four.
	wantReply(beat("a", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 2}), 2, 5)
	// Three are left: the first call grants one, the repeated one grants one of the two.
	wantReply(beat("b", HeartbeatRequest{TotalWantedPages: 20, VisitedPagesSinceJoin: 2}), 2, 4)
	wantReply(beat("a", HeartbeatRequest{TotalWantedPages: 3, VisitedPagesSinceJoin: 2}), 2, 3) // returns two
	wantReply(beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 4}), 2, 6)
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6,
		ReceivedBytesSinceJoin: 999}); m.ByteLimitReached || m.PageLimitReached || m.TimeLimitReached {
		t.Errorf("%+v: no limit is reached yet", m)
	}
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6,
		ReceivedBytesSinceJoin: 1000}); !m.ByteLimitReached {
		t.Errorf("%+v: the byte limit is reached", m)
	}
	cl.ScriptClock().AdvanceTo(begin.Add(2 * time.Second))
	beat("b", HeartbeatRequest{TotalWantedPages: 6, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000})
	cl.ScriptClock().AdvanceTo(begin.Add(4 * time.Second)) // 4 s after the last heartbeat of a
	wantReply(beat("b", HeartbeatRequest{TotalWantedPages: 20, VisitedPagesSinceJoin: 6, ReceivedBytesSinceJoin: 1000}),
		1, 7)
	if _, err := s.Heartbeat(t.Context(), HeartbeatRequest{WorkerName: "a", ExpiresAfter: 3 * time.Second,
		TotalWantedPages: 3, VisitedPagesSinceJoin: 3}); !errors.Is(err, ErrWorkerExpired) {
		t.Errorf("the heartbeat of a returns %v, want %v", err, ErrWorkerExpired)
	}
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7,
		ReceivedBytesSinceJoin: 1000}); !m.PageLimitReached {
		t.Errorf("%+v: nine pages were visited, and one was granted to the expired worker", m)
	}
	cl.ScriptClock().AdvanceTo(begin.Add(6 * time.Second))
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7,
		ReceivedBytesSinceJoin: 1000}); !m.TimeLimitReached {
		t.Errorf("%+v: the workers worked for six seconds", m)
	}
	if m := beat("b", HeartbeatRequest{TotalWantedPages: 7, VisitedPagesSinceJoin: 7, ReceivedBytesSinceJoin: 1000,
		ResetCountsIfLimitReached: true}); m.PageLimitReached || m.ByteLimitReached || m.TimeLimitReached {
		t.Errorf("%+v: the counts start from 0 again", m)
	}
}

// A report that arrives after a later one changes nothing: pages granted since then stay with the
// worker, and pages that it has visited do not count as unused.
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
		t.Errorf("%d pages are granted after an early report arrived late, want %d", granted["a"], before)
	}
	beat("b", HeartbeatRequest{Seq: 1, Joining: true, TotalWantedPages: 9})
	for i := range int64(9) {
		beat("b", HeartbeatRequest{Seq: 2 + i, TotalWantedPages: 9})
	}
	if all := before + granted["b"]; all > 10 {
		t.Errorf("%d pages are granted, want at most 10", all)
	}
}
