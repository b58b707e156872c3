package engine

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/redis/coord"
)

// newTestSharedLimits returns a coordinator with a limit of pages, whose brakes stay fresh for an hour.
func newTestSharedLimits(pages int64, sendHeartbeat func(context.Context, coord.HeartbeatRequest) (coord.HeartbeatReply,
	error)) *MultiProcessCoordinator {
	c := &MultiProcessCoordinator{CrossProcessBrakes: &CrossProcessBrakes{}, sendHeartbeat: sendHeartbeat,
		politenessLimiter: politeness.NewLimiter(politeness.LimiterConfig{}), log: slog.New(slog.DiscardHandler)}
	c.CrossProcessBrakes.freshUntil.Store(time.Now().Add(time.Hour).UnixNano())
	c.heartbeatToSend.Limits.MaxPages = pages
	c.prepareJoinAsNewWorker()
	return c
}

// A worker visits only the pages that an answer has granted. It visits no page that it has merely
// requested, neither while the heartbeat is under way nor when the answer does not arrive.
func TestSharedLimitsVisitsWhatIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan int64)
		c := newTestSharedLimits(100, func(ctx context.Context,
			r coord.HeartbeatRequest) (coord.HeartbeatReply, error) {
			select {
			case n := <-answers:
				return coord.HeartbeatReply{WorkerCount: 1, GrantedPages: n}, nil
			case <-ctx.Done():
				return coord.HeartbeatReply{}, ctx.Err()
			}
		})
		visit := func(want int) {
			t.Helper()
			n := 0
			for c.AcquireCrawlPageBudget().Action == decorum.Proceed {
				n++
			}
			if n != want {
				t.Errorf("%d pages are visited, want %d", n, want)
			}
		}
		visit(0)
		go c.exchangeHeartbeat(t.Context())
		synctest.Wait()
		visit(0) // the worker has requested one page
		answers <- 3
		synctest.Wait()
		visit(3)
		go c.exchangeHeartbeat(t.Context())
		synctest.Wait()
		visit(0) // the worker has requested more pages
		time.Sleep(2 * SharedBrakesMaxAge)
		visit(0) // the answer did not arrive
		go c.exchangeHeartbeat(t.Context())
		answers <- 5
		synctest.Wait()
		visit(2)
	})
}

// A new worker begins when all others know of it, however long the answer to its first heartbeat takes:
// another worker may have sent a heartbeat just before the servers read that one.
func TestSharedLimitsBeginsWhenAllKnowOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = SharedBrakesMaxAge / 2
		var answered time.Time
		c := newTestSharedLimits(0, func(context.Context, coord.HeartbeatRequest) (coord.HeartbeatReply, error) {
			if answered.IsZero() {
				time.Sleep(took)
				answered = time.Now()
			}
			return coord.HeartbeatReply{WorkerCount: 2}, nil
		})
		defer c.StartHeartbeats(func(error) {})()
		for c.CheckVisit(time.Now()).Action != decorum.Proceed {
			time.Sleep(heartbeatInterval / 10)
		}
		if waited := time.Since(answered); waited < SharedBrakesMaxAge ||
			waited > SharedBrakesMaxAge+heartbeatInterval {
			t.Errorf("the worker begins %v after the answer, want %v", waited, SharedBrakesMaxAge)
		}
	})
}

// Heartbeats are numbered in the order in which they are made, including the last one, so that the servers
// recognize one that arrives late.
func TestSharedLimitsNumbersItsReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []coord.HeartbeatRequest
		c := newTestSharedLimits(100, func(_ context.Context, r coord.HeartbeatRequest) (coord.HeartbeatReply, error) {
			reports = append(reports, r)
			return coord.HeartbeatReply{WorkerCount: 1}, nil
		})
		end := c.StartHeartbeats(func(error) {})
		time.Sleep(5 * heartbeatInterval)
		end()
		for i, r := range reports {
			if r.Seq != int64(i+1) || r.Leaving != (i == len(reports)-1) {
				t.Errorf("report %d has number %d (the last: %t)", i+1, r.Seq, r.Leaving)
			}
		}
		if len(reports) < 5 {
			t.Errorf("%d reports were made", len(reports))
		}
	})
}
