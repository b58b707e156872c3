package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/redis/coord"
)

// How the workers of a crawl keep to limits of all together: each reports every
// heartbeatInterval, and begins no visit when it could not for SharedBrakesMaxAge; who has not
// reported for workerTimeout is dead. So shares of a rate are never more than all of it:
// a worker that is new begins when all others know of it.
const (
	heartbeatInterval = sharedPollInterval
	workerTimeout     = 3 * SharedBrakesMaxAge
)

// A MultiProcessCoordinator is the processes that work on a crawl: its crawler.Coordinator. Where there are
// no limits of all together, it is the commons alone.
type MultiProcessCoordinator struct {
	*CrossProcessBrakes
	sendHeartbeat      func(context.Context, coord.HeartbeatRequest) (coord.HeartbeatReply, error) // nil: there are no limits
	politenessLimiter  *politeness.Limiter
	log                *slog.Logger
	onLimitCountsReset func() // called when limits count anew; nil: nobody is told

	mu                          sync.Mutex
	heartbeatToSend             coord.HeartbeatRequest // what is told next
	pagesGrantedSinceJoin       int64                  // pages that are permitted, of those that the report counts
	visitedPagesAtLastHeartbeat int64                  // pages, a heartbeatInterval ago: as many may be wanted in the next
	replyValidUntil             time.Time              // until then what was told last is so
	joinedAt                    time.Time              // when it was answered first: the others know of it SharedBrakesMaxAge later
	pageLimitReached            bool                   // no more pages
}

// newMultiProcessCoordinator returns the coordinator of a project's crawl; nil if it has none.
func newMultiProcessCoordinator(g *Config, p project.Project, limiter *politeness.Limiter) *MultiProcessCoordinator {
	if g.SharedBrakes == nil {
		return nil
	}
	c := &MultiProcessCoordinator{CrossProcessBrakes: g.SharedBrakes, politenessLimiter: limiter, log: g.Log, onLimitCountsReset: g.OnLimitCountsReset}
	l := p.Limits
	if l.Pages == 0 && l.Bytes == 0 && l.Duration == 0 && l.RequestsPerSecond == 0 && l.BytesPerSecond == 0 {
		c.notifyIfLimitCountsReset(g.ResetCountsIfLimitReached) // there is nothing to count
		return c
	}
	c.sendHeartbeat = g.Stores.Frontier.(interface {
		SharedLimits() *coord.SharedCrawlLimits
	}).SharedLimits().Heartbeat
	c.heartbeatToSend = coord.HeartbeatRequest{ExpiresAfter: workerTimeout, ResetCountsIfLimitReached: g.ResetCountsIfLimitReached,
		Limits: coord.CrawlLimits{MaxPages: int64(l.Pages), MaxReceivedBytes: int64(l.Bytes), MaxWorkingTime: time.Duration(l.Duration)}}
	c.prepareJoinAsNewWorker()
	return c
}

// notifyIfLimitCountsReset tells that limits count anew, if they do.
func (c *MultiProcessCoordinator) notifyIfLimitCountsReset(renewed bool) {
	if renewed && c.onLimitCountsReset != nil {
		c.onLimitCountsReset()
	}
}

// prepareJoinAsNewWorker has the next report be the first of a worker.
func (c *MultiProcessCoordinator) prepareJoinAsNewWorker() {
	c.heartbeatToSend.WorkerName, c.heartbeatToSend.Joining = rand.Text(), true
	c.heartbeatToSend.TotalWantedPages, c.heartbeatToSend.VisitedPagesSinceJoin, c.heartbeatToSend.ReceivedBytesSinceJoin, c.pagesGrantedSinceJoin, c.visitedPagesAtLastHeartbeat = 0, 0, 0, 0, 0
}

// StartHeartbeats reports until end is called, when all that was in hand has ended. A limit that
// is reached ends the crawl by stop.
func (c *MultiProcessCoordinator) StartHeartbeats(stop context.CancelCauseFunc) (stopReporting func()) {
	if c == nil || c.sendHeartbeat == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for wait := time.Duration(0); sleep(ctx, wait) == nil; wait = heartbeatInterval {
			if err := c.exchangeHeartbeat(ctx); err != nil {
				stop(err)
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait()
		c.reportLeaving()
	}
}

// reportLeaving tells, when all that was in hand has ended, that this worker works no more.
func (c *MultiProcessCoordinator) reportLeaving() {
	ctx, cancel := context.WithTimeout(context.Background(), SharedBrakesMaxAge)
	defer cancel()
	c.mu.Lock()
	r := c.heartbeatToSend
	c.mu.Unlock()
	r.Seq, r.TotalWantedPages, r.Leaving, r.Joining = r.Seq+1, r.VisitedPagesSinceJoin, true, false
	_, err := c.sendHeartbeat(ctx, r)
	if err != nil && !errors.Is(err, coord.ErrWorkerExpired) {
		c.log.Warn("the other workers cannot be told that this one ends; they wait a moment for it", "error", err)
	}
}

// exchangeHeartbeat makes a report, and returns the limit that is reached.
func (c *MultiProcessCoordinator) exchangeHeartbeat(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, SharedBrakesMaxAge)
	defer cancel()
	c.mu.Lock()
	if c.heartbeatToSend.Limits.MaxPages > 0 {
		recent := c.heartbeatToSend.VisitedPagesSinceJoin - c.visitedPagesAtLastHeartbeat
		c.visitedPagesAtLastHeartbeat = c.heartbeatToSend.VisitedPagesSinceJoin
		c.heartbeatToSend.TotalWantedPages = c.heartbeatToSend.VisitedPagesSinceJoin + max(1, 2*recent)
		c.pagesGrantedSinceJoin = min(c.pagesGrantedSinceJoin, c.heartbeatToSend.TotalWantedPages) // what is not wanted goes back now; what is, has to be granted
	}
	c.heartbeatToSend.Seq++
	r := c.heartbeatToSend
	c.mu.Unlock()
	m, err := c.sendHeartbeat(ctx, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, coord.ErrWorkerExpired): // this process was stopped for a while
		c.prepareJoinAsNewWorker()
		return nil
	case err != nil:
		return nil // what was told last is so for SharedBrakesMaxAge
	}
	return c.applyReply(began, time.Now(), m)
}

// applyReply takes note of what is told to who asked at began, and is answered now. It needs
// the lock.
func (c *MultiProcessCoordinator) applyReply(began, now time.Time, m coord.HeartbeatReply) error {
	if c.heartbeatToSend.Joining {
		c.joinedAt = now
	}
	c.notifyIfLimitCountsReset(c.heartbeatToSend.ResetCountsIfLimitReached)
	c.heartbeatToSend.Joining, c.heartbeatToSend.ResetCountsIfLimitReached = false, false
	c.pagesGrantedSinceJoin, c.replyValidUntil = m.GrantedPages, began.Add(SharedBrakesMaxAge)
	c.politenessLimiter.SetRateShare(began, 1/float64(max(1, m.WorkerCount)))
	switch {
	case m.PageLimitReached:
		c.pageLimitReached = true
		return crawler.ErrPages
	case m.ByteLimitReached:
		return crawler.ErrBytes
	case m.TimeLimitReached:
		return ErrTimeLimit
	}
	return nil
}

// CheckVisit implements crawler.Coordinator.
func (c *MultiProcessCoordinator) CheckVisit(now time.Time) decorum.Decision {
	if d := c.CrossProcessBrakes.CheckFresh(now); d.Action != decorum.Proceed || c.sendHeartbeat == nil {
		return d
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.replyValidUntil) && !now.Before(c.joinedAt.Add(SharedBrakesMaxAge)) {
		return decorum.Decision{}
	}
	return workerLimitDecision(now)
}

// workerLimitDecision has visits wait for the next answer to a report.
func workerLimitDecision(now time.Time) decorum.Decision {
	return otherProcessesDecision("the crawl's limit of all its processes", now.Add(heartbeatInterval))
}

// AcquireCrawlPageBudget implements crawler.Coordinator.
func (c *MultiProcessCoordinator) AcquireCrawlPageBudget() decorum.Decision {
	if c.sendHeartbeat == nil {
		return decorum.Decision{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch limited := c.heartbeatToSend.Limits.MaxPages > 0; {
	case c.pageLimitReached:
		return crawler.PageLimitDecision()
	case limited && c.heartbeatToSend.VisitedPagesSinceJoin >= c.pagesGrantedSinceJoin:
		return workerLimitDecision(time.Now())
	}
	c.heartbeatToSend.VisitedPagesSinceJoin++
	return decorum.Decision{}
}

// ReleaseCrawlPageBudget implements crawler.Coordinator.
func (c *MultiProcessCoordinator) ReleaseCrawlPageBudget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendHeartbeat != nil {
		c.heartbeatToSend.VisitedPagesSinceJoin--
	}
}

// AddBodyBytes implements crawler.Coordinator.
func (c *MultiProcessCoordinator) AddBodyBytes(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heartbeatToSend.ReceivedBytesSinceJoin += bytes
}

// AvailableVisits implements frontier.VisitBudget: nothing is leased that would be given back.
func (c *MultiProcessCoordinator) AvailableVisits(now time.Time, want int) (grant int, wait time.Duration) {
	if d := c.CheckVisit(now); d.Action != decorum.Proceed {
		return 0, d.Until.Sub(now)
	}
	c.mu.Lock()
	remaining := c.pagesGrantedSinceJoin - c.heartbeatToSend.VisitedPagesSinceJoin
	limited := c.heartbeatToSend.Limits.MaxPages > 0
	c.mu.Unlock()
	if limited {
		if want = int(min(int64(want), remaining)); want <= 0 {
			return 0, heartbeatInterval
		}
	}
	return c.politenessLimiter.AvailableVisits(now, want)
}

// Reasons to stop a crawl that is not at its end.
var (
	ErrTimeLimit   = errors.New("the limit of time is reached")
	ErrInterrupted = errors.New("it was interrupted")
)

// sleep waits, and returns the cause of ctx if that is done.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
