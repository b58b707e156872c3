package crawler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// step takes one URL through the house: one lease, at most one visit, one ack.
// It stops the crawl with the error it returns. ctx ends the waiting for a
// lease, work ends what is in hand.
func (c *Crawler) step(ctx, work context.Context) error {
	lease, err := c.Frontier.Next(ctx)
	if err != nil {
		return err
	}
	c.hand.take(lease)
	defer c.hand.leave(lease)
	c.memos.take(lease)
	defer c.memos.leave(lease)
	ack, err := c.walk(work, lease)
	ack.Lease = handBack(lease, ack)
	// What was done is done: the ack must reach the store even when work is over.
	ackErr := c.ack(afterwards(work), ack)
	if errors.Is(ackErr, storage.ErrStale) {
		c.Log.Warn("lease ran out during its visit; the URL will be visited again", "url", lease.URL)
		ackErr = nil
	}
	if c.Hooks.Acked != nil {
		c.Hooks.Acked(ack)
	}
	return errors.Join(err, ackErr)
}

// walk is the hallway. It never sleeps, and nothing in it goes back to an
// earlier room.
func (c *Crawler) walk(ctx context.Context, l storage.Lease) (storage.Ack, error) {
	clearance, err := c.clear(ctx, l)
	if clean, ok := c.alias(l, clearance, err); ok {
		return c.replace(ctx, l, clean)
	}
	if err != nil {
		return c.refuse(ctx, l, err)
	}
	if !clearance.ForRobots() {
		if err := c.heed(ctx, clearance.Origin(), clearance.File()); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
	}
	if isWatch(l) && !clearance.ForRobots() {
		return c.watched(), nil
	}
	if !c.begin(l, clearance) {
		return c.setAside(ctx, l)
	}
	permit, err := c.admit(ctx, l, clearance)
	if err != nil {
		c.Gate.Forget(clearance)
		return c.refuse(ctx, l, err)
	}
	if err := c.take(l, clearance); err != nil {
		c.Limits.Release(permit)
		return c.refuse(ctx, l, err)
	}
	ticket, err := NewTicket(clearance, permit)
	if err != nil {
		c.Limits.Release(permit)
		return storage.Ack{Outcome: storage.Again}, err
	}
	ticket.stub.errand = !isPage(l, clearance)
	condition(ticket, l, clearance)
	v := c.fetch(ctx, l, clearance, ticket)
	return c.receive(ctx, v)
}

// clear asks scope again, and the robots gate: for the URL, or for its
// robots.txt if that must come first, or for a hop of somebody's robots.txt.
func (c *Crawler) clear(ctx context.Context, l storage.Lease) (robots.Clearance, error) {
	visit := l.Entry
	visit.URL = target(l)
	if err := c.Frontier.InScope(visit); err != nil { // it may be narrower than when the URL was found
		return robots.Clearance{}, err
	}
	if !l.For.IsZero() {
		return c.Gate.CheckHop(ctx, time.Now(), l.URL, l.For)
	}
	return c.Gate.Check(ctx, time.Now(), target(l))
}

// isPage reports whether a visit is to a page, and not to a file for robots.
func isPage(l storage.Lease, cl robots.Clearance) bool {
	return !cl.ForRobots() && l.Source != storage.Robots
}

// errSitemaps drops a sitemap beyond the limit of a run.
var errSitemaps = errors.New("the limit of sitemaps is reached")

// take counts a page or a sitemap that is about to be visited, and returns why
// it may not be: a limit of the run.
func (c *Crawler) take(l storage.Lease, cl robots.Clearance) error {
	switch {
	case cl.ForRobots():
	case c.Settings.MaxBytes > 0 && c.bytes.Load() >= c.Settings.MaxBytes:
		return ErrBytes
	case isPage(l, cl):
		if n := c.pages.Add(1); c.Settings.MaxPages > 0 && n > c.Settings.MaxPages {
			return ErrPages
		}
	case l.Page == nil && c.sitemaps.Add(1) > int64(c.Settings.Sitemaps):
		return &decorum.Error{Op: "visit", URL: l.URL.String(), Kind: decorum.Dropped, Err: errSitemaps}
	}
	return nil
}

// admit asks for a permit: the host must be due, by the store's clock and by
// the limiter's. Where the rest that the store knows of is shorter than the
// Crawl-delay that is known now (another crawl learnt it, or a crash came
// between learning it and the ack), the host rests for that first.
func (c *Crawler) admit(ctx context.Context, l storage.Lease, cl robots.Clearance) (politeness.Permit, error) {
	origin := cl.URL().Origin()
	delay, err := c.crawlDelay(ctx, origin)
	if err != nil {
		return politeness.Permit{}, err
	}
	if longest := c.Policy.WithDefaults().MaxCrawlDelay; delay > longest && !cl.ForRobots() {
		return politeness.Permit{}, &robots.Closed{Until: time.Now().Add(asideFor), Dormant: true,
			Why: fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", delay, longest)}
	}
	if l.Host.Gap < delay {
		return politeness.Permit{}, politeness.TooEarly(delay)
	}
	return c.Limits.Admit(time.Now(), origin.Host(), l.Host.Due, l.Host.Slots)
}

// asideFor is how long an origin is set aside for a reason of our own, until it
// is looked at again. That costs no request: the reason may be gone by then.
const asideFor = time.Minute

// recheck is when a worker that found a robots.txt being looked up by another
// has the gate asked again. Its hold may come after the one that the other
// lifted, so it is short.
const recheck = 5 * time.Second

// refuse says what becomes of a URL that was not cleared, or whose host is not
// due. That cost the host nothing.
func (c *Crawler) refuse(ctx context.Context, l storage.Lease, err error) (storage.Ack, error) {
	if c.Hooks.Refused != nil {
		c.Hooks.Refused(l, err)
	}
	var (
		closed  *robots.Closed
		early   politeness.TooEarly
		end     *robots.ChainEnd
		refusal *robots.Refusal
	)
	switch {
	case errors.As(err, &early):
		rest := time.Duration(early)
		return storage.Ack{Outcome: storage.Again, Host: &storage.Host{Due: time.Now().Add(rest),
			Gap: max(l.Host.Gap, rest), Slots: l.Host.Slots, Strikes: l.Host.Strikes}}, nil
	case errors.Is(err, decorum.OutOfScope):
		return storage.Ack{Outcome: storage.Parked}, nil
	case errors.As(err, &refusal):
		if err := c.close(ctx, l.URL.Origin(), refusal.File); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
		c.tally.blocked.Add(1)
		return storage.Ack{Outcome: storage.Parked}, nil
	case errors.As(err, &closed):
		until := closed.Until
		if soon := time.Now().Add(recheck); errors.Is(err, decorum.Pending) && soon.Before(until) {
			until = soon
		}
		return storage.Ack{Outcome: storage.Again}, c.Frontier.Hold(ctx, l.URL.Origin(), until, closed.Dormant)
	case errors.As(err, &end):
		return storage.Ack{Outcome: storage.Gone}, c.follow(ctx, l.URL, end.Lesson, nil)
	case errors.Is(err, decorum.Dropped):
		return storage.Ack{Outcome: storage.Gone}, nil
	}
	return storage.Ack{Outcome: storage.Again}, err
}

// fetch makes the visit.
func (c *Crawler) fetch(ctx context.Context, l storage.Lease, cl robots.Clearance, t Ticket) *Visit {
	v := &Visit{Lease: l, Clearance: cl, before: c.memos.last(l), Start: time.Now()}
	v.Response, v.Err = c.Fetcher.Fetch(ctx, t)
	v.End = time.Now()
	if v.Response != nil {
		v.Start, v.End = v.Response.Start, v.Response.End
	}
	v.brokenOff = v.Response == nil && ctx.Err() != nil
	c.tally.visit(v)
	return v
}

// rest says when the host may be visited again after v, and remembers it. If
// the delay that the host asks for cannot be read, the rest is at least as long
// as the last.
func (c *Crawler) rest(ctx context.Context, v *Visit) (*storage.Host, error) {
	origin := v.URL().Origin()
	delay, err := c.crawlDelay(afterwards(ctx), origin)
	if err != nil {
		delay = v.Lease.Host.Gap
	}
	visit := politeness.Visit{
		Start: v.Start, End: v.End, Status: v.Status(),
		CrawlDelay: delay, Strikes: v.Lease.Host.Strikes,
	}
	bytes := 0
	if v.Response != nil {
		visit.RetryAfter = politeness.ParseRetryAfter(v.Response.Header.Get("Retry-After"), v.End)
		bytes = len(v.Response.Body)
	}
	if v.brokenOff || v.unsent() {
		visit.Status = http.StatusOK // it says nothing of the server
	}
	rest := c.Policy.Next(visit)
	c.Limits.Ended(origin.Host(), rest, bytes)
	c.memos.count(v, delay, c.Policy.WithDefaults().Delay)
	return &storage.Host{Due: rest.Due, Gap: rest.Gap, Slots: rest.Slots, Strikes: rest.Strikes}, err
}
