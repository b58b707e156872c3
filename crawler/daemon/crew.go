package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/redis"
)

// How the workers of a crawl keep to limits of all together: each reports every
// musterPoll, and begins no visit when it could not for boardTrust; who has not
// reported for crewPatience is dead. So shares of a rate are never more than all of it:
// a worker that is new begins when all others know of it.
const (
	musterPoll   = boardPoll
	crewPatience = 3 * boardTrust
)

// A crew is the processes that work on a crawl: its crawler.Coordinator. Where there are
// no limits of all together, it is the commons alone.
type crew struct {
	*commons
	muster          func(context.Context, redis.Report) (redis.Muster, error) // nil: there are no limits
	rates           *politeness.Limits
	log             *slog.Logger
	onLimitsRenewed func() // called when limits count anew; nil: nobody is told

	mu      sync.Mutex
	report  redis.Report // what is told next
	permits int64        // pages that are permitted, of those that the report counts
	used    int64        // pages, a musterPoll ago: as many may be wanted in the next
	known   time.Time    // until then what was told last is so
	joined  time.Time    // when it was answered first: the others know of it boardTrust later
	over    bool         // no more pages
}

// newCrew returns the crew of a project's crawl; nil if it has none.
func newCrew(g *ground, p Project, rates *politeness.Limits) *crew {
	if g.common == nil {
		return nil
	}
	c := &crew{commons: g.common, rates: rates, log: g.log, onLimitsRenewed: g.renewed}
	l := p.Limits
	if l.Pages == 0 && l.Bytes == 0 && l.Duration == 0 && l.RequestsPerSecond == 0 && l.BytesPerSecond == 0 {
		c.tell(g.renews) // there is nothing to count
		return c
	}
	c.muster = g.files.frontier.(interface {
		Muster(context.Context, redis.Report) (redis.Muster, error)
	}).Muster
	c.report = redis.Report{Patience: crewPatience, Renews: g.renews,
		Limits: redis.Limits{Pages: int64(l.Pages), Bytes: int64(l.Bytes), Time: time.Duration(l.Duration)}}
	c.join()
	return c
}

// tell tells that limits count anew, if they do.
func (c *crew) tell(renewed bool) {
	if renewed && c.onLimitsRenewed != nil {
		c.onLimitsRenewed()
	}
}

// join has the next report be the first of a worker.
func (c *crew) join() {
	c.report.Worker, c.report.Joins = rand.Text(), true
	c.report.Permits, c.report.Used, c.report.Received, c.permits, c.used = 0, 0, 0, 0, 0
}

// begin reports until end is called, when all that was in hand has ended. A limit that
// is reached ends the crawl by stop.
func (c *crew) begin(stop context.CancelCauseFunc) (end func()) {
	if c == nil || c.muster == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for wait := time.Duration(0); sleep(ctx, wait) == nil; wait = musterPoll {
			if err := c.call(ctx); err != nil {
				stop(err)
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait()
		c.leave()
	}
}

// leave tells, when all that was in hand has ended, that this worker works no more.
func (c *crew) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), boardTrust)
	defer cancel()
	c.mu.Lock()
	r := c.report
	c.mu.Unlock()
	r.Number, r.Permits, r.Leaves, r.Joins = r.Number+1, r.Used, true, false
	_, err := c.muster(ctx, r)
	if err != nil && !errors.Is(err, redis.ErrGone) {
		c.log.Warn("the other workers cannot be told that this one ends; they wait a moment for it", "error", err)
	}
}

// call makes a report, and returns the limit that is reached.
func (c *crew) call(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, boardTrust)
	defer cancel()
	c.mu.Lock()
	if c.report.Limits.Pages > 0 {
		lately := c.report.Used - c.used
		c.used = c.report.Used
		c.report.Permits = c.report.Used + max(1, 2*lately)
		c.permits = min(c.permits, c.report.Permits) // what is not wanted goes back now; what is, has to be granted
	}
	c.report.Number++
	r := c.report
	c.mu.Unlock()
	m, err := c.muster(ctx, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, redis.ErrGone): // this process was stopped for a while
		c.join()
		return nil
	case err != nil:
		return nil // what was told last is so for boardTrust
	}
	return c.learn(began, time.Now(), m)
}

// learn takes note of what is told to who asked at began, and is answered now. It needs
// the lock.
func (c *crew) learn(began, now time.Time, m redis.Muster) error {
	if c.report.Joins {
		c.joined = now
	}
	c.tell(c.report.Renews)
	c.report.Joins, c.report.Renews = false, false
	c.permits, c.known = m.Permits, began.Add(boardTrust)
	c.rates.SetShare(began, 1/float64(max(1, m.Workers)))
	switch {
	case m.Pages:
		c.over = true
		return crawler.ErrPages
	case m.Bytes:
		return crawler.ErrBytes
	case m.Time:
		return errTime
	}
	return nil
}

// May implements crawler.Coordinator.
func (c *crew) CheckVisit(now time.Time) error {
	if err := c.commons.May(now); err != nil || c.muster == nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.known) && !now.Before(c.joined.Add(boardTrust)) {
		return nil
	}
	return busyUntil(now)
}

func busyUntil(now time.Time) error {
	return &politeness.Busy{What: "the crawl's limit of all its processes", Until: now.Add(musterPoll)}
}

// Page implements crawler.Coordinator.
func (c *crew) AcquirePage() error {
	if c.muster == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch limited := c.report.Limits.Pages > 0; {
	case c.over:
		return crawler.ErrPages
	case limited && c.report.Used >= c.permits:
		return busyUntil(time.Now())
	}
	c.report.Used++
	return nil
}

// Unpage implements crawler.Coordinator.
func (c *crew) ReleasePage() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muster != nil {
		c.report.Used--
	}
}

// Receive implements crawler.Coordinator.
func (c *crew) AddBytes(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Received += bytes
}

// Ready implements frontier.Budget: nothing is leased that would be given back.
func (c *crew) Ready(now time.Time, want int) (grant int, wait time.Duration) {
	var busy *politeness.Busy
	if errors.As(c.CheckVisit(now), &busy) {
		return 0, busy.Until.Sub(now)
	}
	c.mu.Lock()
	left := c.permits - c.report.Used
	limited := c.report.Limits.Pages > 0
	c.mu.Unlock()
	if limited {
		if want = int(min(int64(want), left)); want <= 0 {
			return 0, musterPoll
		}
	}
	return c.rates.Ready(now, want)
}
