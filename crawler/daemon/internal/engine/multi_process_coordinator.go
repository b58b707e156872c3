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

// The workers of a crawl, one per process, keep to its limits together. Each worker sends a heartbeat
// every heartbeatInterval. A worker whose last answer is older than SharedBrakesMaxAge begins no visit,
// and one that has sent no heartbeat for workerTimeout counts as dead. A new worker begins only when all
// others know of it, so that the shares of a rate never add up to more than the whole.
const (
	heartbeatInterval = sharedPollInterval
	workerTimeout     = 3 * SharedBrakesMaxAge
)

// A MultiProcessCoordinator enforces the limits of a crawl on which several processes work. It implements
// crawler.Coordinator and frontier.VisitBudget. For a crawl without limits it checks only the shared
// brakes.
type MultiProcessCoordinator struct {
	*CrossProcessBrakes
	// sendHeartbeat exchanges one heartbeat; nil: the crawl has no limits.
	sendHeartbeat      func(context.Context, coord.HeartbeatRequest) (coord.HeartbeatReply, error)
	politenessLimiter  *politeness.Limiter
	log                *slog.Logger
	onLimitCountsReset func() // called after a reset of the counts, perhaps with mu held; may be nil

	// mu guards heartbeatToSend, pagesGrantedSinceJoin, visitedPagesAtLastHeartbeat, replyValidUntil,
	// joinedAt and pageLimitReached.
	mu                    sync.Mutex
	heartbeatToSend       coord.HeartbeatRequest // the next heartbeat; visits count in it
	pagesGrantedSinceJoin int64                  // limit of heartbeatToSend.VisitedPagesSinceJoin
	// visitedPagesAtLastHeartbeat is VisitedPagesSinceJoin one heartbeat ago, to estimate the demand.
	visitedPagesAtLastHeartbeat int64
	replyValidUntil             time.Time // SharedBrakesMaxAge after the last answered heartbeat was sent
	// joinedAt is when the first answer arrived. The other workers know this one SharedBrakesMaxAge later.
	joinedAt         time.Time
	pageLimitReached bool // all processes together have reached MaxPages
}

// newMultiProcessCoordinator returns the coordinator of a project's crawl, or nil for a crawl of one
// process.
func newMultiProcessCoordinator(g *Config, p project.Project, limiter *politeness.Limiter) *MultiProcessCoordinator {
	if g.SharedBrakes == nil {
		return nil
	}
	c := &MultiProcessCoordinator{CrossProcessBrakes: g.SharedBrakes, politenessLimiter: limiter, log: g.Log,
		onLimitCountsReset: g.OnLimitCountsReset}
	l := p.Limits
	if l.Pages == 0 && l.Bytes == 0 && l.Duration == 0 && l.RequestsPerSecond == 0 && l.BytesPerSecond == 0 {
		c.notifyIfLimitCountsReset(g.ResetCountsIfLimitReached) // without limits, there are no counts to reset
		return c
	}
	c.sendHeartbeat = g.Stores.Frontier.(interface {
		SharedLimits() *coord.SharedCrawlLimits
	}).SharedLimits().Heartbeat
	c.heartbeatToSend = coord.HeartbeatRequest{ExpiresAfter: workerTimeout,
		ResetCountsIfLimitReached: g.ResetCountsIfLimitReached,
		Limits: coord.CrawlLimits{MaxPages: int64(l.Pages), MaxReceivedBytes: int64(l.Bytes),
			MaxWorkingTime: time.Duration(l.Duration)}}
	c.prepareJoinAsNewWorker()
	return c
}

// notifyIfLimitCountsReset calls onLimitCountsReset if renewed is set.
func (c *MultiProcessCoordinator) notifyIfLimitCountsReset(renewed bool) {
	if renewed && c.onLimitCountsReset != nil {
		c.onLimitCountsReset()
	}
}

// prepareJoinAsNewWorker makes the next heartbeat the first one of a new worker. The caller holds c.mu, or
// is the only user of c.
func (c *MultiProcessCoordinator) prepareJoinAsNewWorker() {
	c.heartbeatToSend.WorkerName, c.heartbeatToSend.Joining = rand.Text(), true
	c.heartbeatToSend.TotalWantedPages = 0
	c.heartbeatToSend.VisitedPagesSinceJoin, c.heartbeatToSend.ReceivedBytesSinceJoin = 0, 0
	c.pagesGrantedSinceJoin, c.visitedPagesAtLastHeartbeat = 0, 0
}

// StartHeartbeats starts a goroutine that sends heartbeats until stopReporting is called. It calls stop
// with the error of a limit that the crawl reaches. The caller calls stopReporting when all visits have
// ended; it waits for the goroutine, and reports that this worker leaves.
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

// reportLeaving sends the last heartbeat, which returns the unused pages to the other workers.
func (c *MultiProcessCoordinator) reportLeaving() {
	ctx, cancel := context.WithTimeout(context.Background(), SharedBrakesMaxAge)
	defer cancel()
	c.mu.Lock()
	r := c.heartbeatToSend
	c.mu.Unlock()
	r.Seq, r.TotalWantedPages, r.Leaving, r.Joining = r.Seq+1, r.VisitedPagesSinceJoin, true, false
	_, err := c.sendHeartbeat(ctx, r)
	if err != nil && !errors.Is(err, coord.ErrWorkerExpired) {
		c.log.Warn("the other workers do not learn that this one ends; they wait for it a moment longer", "error", err)
	}
}

// exchangeHeartbeat sends a heartbeat and applies the answer. It returns the error of a limit that is
// reached. A heartbeat that is not answered is not an error: the last answer stays valid until
// replyValidUntil.
func (c *MultiProcessCoordinator) exchangeHeartbeat(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, SharedBrakesMaxAge)
	defer cancel()
	// Ask for twice the pages of the last interval, and give back at once what exceeds the new demand.
	// Further pages count only when they are granted.
	c.mu.Lock()
	if c.heartbeatToSend.Limits.MaxPages > 0 {
		recent := c.heartbeatToSend.VisitedPagesSinceJoin - c.visitedPagesAtLastHeartbeat
		c.visitedPagesAtLastHeartbeat = c.heartbeatToSend.VisitedPagesSinceJoin
		c.heartbeatToSend.TotalWantedPages = c.heartbeatToSend.VisitedPagesSinceJoin + max(1, 2*recent)
		c.pagesGrantedSinceJoin = min(c.pagesGrantedSinceJoin, c.heartbeatToSend.TotalWantedPages)
	}
	c.heartbeatToSend.Seq++
	r := c.heartbeatToSend
	c.mu.Unlock()
	// Visits continue, and count in c.heartbeatToSend, while r is under way.
	m, err := c.sendHeartbeat(ctx, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, coord.ErrWorkerExpired): // this process was suspended for longer than workerTimeout
		c.prepareJoinAsNewWorker()
		return nil
	case err != nil:
		return nil
	}
	return c.applyReply(began, time.Now(), m)
}

// applyReply applies the answer m, which arrived at now, to the heartbeat that was sent at began. It
// returns the error of a limit that is reached. The caller holds c.mu.
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

// CheckVisit implements crawler.Coordinator. A visit may begin while the copy of the brakes and, in a
// crawl with limits, the last answer are current, once the other workers know this one.
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

// workerLimitDecision returns a decision that postpones a visit until the next heartbeat.
func workerLimitDecision(now time.Time) decorum.Decision {
	return otherProcessesDecision("the crawl's limit for all its processes", now.Add(heartbeatInterval))
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

// AvailableVisits implements frontier.VisitBudget. It grants no more visits than CheckVisit and
// AcquireCrawlPageBudget will allow, so that the frontier leases no URL that must be returned.
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

// Causes with which a crawl is stopped before its URLs are used up.
var (
	ErrTimeLimit   = errors.New("the limit of time is reached")
	ErrInterrupted = errors.New("it was interrupted")
)

// sleep waits for d. If ctx ends first, it returns the cause at once.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
