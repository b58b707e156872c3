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

// newTestSharedLimits returns a crew with a limit of pages, of which the brakes are known for long.
func newTestSharedLimits(pages int64, sendHeartbeat func(context.Context, coord.HeartbeatRequest) (coord.HeartbeatReply, error)) *MultiProcessCoordinator {
	c := &MultiProcessCoordinator{CrossProcessBrakes: &CrossProcessBrakes{}, sendHeartbeat: sendHeartbeat, politenessLimiter: politeness.NewLimiter(politeness.LimiterConfig{}), log: slog.New(slog.DiscardHandler)}
	c.CrossProcessBrakes.freshUntil.Store(time.Now().Add(time.Hour).UnixNano())
	c.heartbeatToSend.Limits.MaxPages = pages
	c.prepareJoinAsNewWorker()
	return c
}

// A worker visits what it is permitted, and not what it would like to be: neither while
// its report is under way, nor when no answer came.
func TestSharedLimitsVisitsWhatIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan int64)
		c := newTestSharedLimits(100, func(ctx context.Context, r coord.HeartbeatRequest) (coord.HeartbeatReply, error) {
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
		visit(0) // it has asked for one
		answers <- 3
		synctest.Wait()
		visit(3)
		go c.exchangeHeartbeat(t.Context())
		synctest.Wait()
		visit(0) // for more
		time.Sleep(2 * SharedBrakesMaxAge)
		visit(0) // and was not answered
		go c.exchangeHeartbeat(t.Context())
		answers <- 5
		synctest.Wait()
		visit(2)
	})
}

// A worker that is new begins when all others know of it, however long the answer to
// its first report takes: another may have reported just before that was read.
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
		if waited := time.Since(answered); waited < SharedBrakesMaxAge || waited > SharedBrakesMaxAge+heartbeatInterval {
			t.Errorf("it begins %v after it was answered, want %v", waited, SharedBrakesMaxAge)
		}
	})
}

// Reports are numbered as they are made, the last one too: one that arrives late is known
// by that.
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
