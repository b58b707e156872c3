package crawler

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
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
	visit := c.hands.take(work, lease)
	defer c.hands.leave(lease)
	c.memos.take(lease)
	defer c.memos.leave(lease)
	defer c.reservations.leave(lease)
	ack, err := c.walk(visit, lease)
	if err != nil && errors.Is(context.Cause(visit), errLapsed) {
		ack, err = storage.Ack{Outcome: storage.Again}, nil // we broke it off: that ends no crawl
	}
	ack.Lease = handBack(lease, ack)
	// What was done is done: the ack must reach the store even when work is over.
	ackErr := c.ack(afterwards(work), &ack)
	if errors.Is(ackErr, storage.ErrStale) {
		c.Log.Warn("lease ran out during its visit; the URL will be visited again", "url", lease.URL)
		ackErr = nil
	}
	if ack.Host != nil && ack.Host.Gap >= longRest && ack.Host.Gap > lease.Host.Gap {
		err = errors.Join(err, c.flush(work))
	}
	if c.Hooks.Acked != nil {
		c.Hooks.Acked(ack)
	}
	return errors.Join(err, ackErr, c.callWaiting(work))
}

// longRest is how long a rest is that is made durable at once if it is longer
// than the host's last: a host that asks to be left alone for an hour is left
// alone though the crawl be killed in the next moment. After a crash every host
// has its last rest anyway, so that a rest that stays the same costs nothing.
const longRest = 10 * time.Second

// flush makes all that was acked durable. Where that cannot be for now, or the
// crawl is being halted, it goes the usual way.
func (c *Crawler) flush(ctx context.Context) error {
	err := c.Frontier.Flush(ctx)
	if errors.Is(err, storage.ErrStalled) || ctx.Err() != nil {
		return nil
	}
	return err
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
	if isWatch(l) && !clearance.ForRobots() && !isDetour(l, clearance) {
		return c.watched(), nil
	}
	if c.Settings.Scout && isPage(l, clearance) {
		return c.passBy(ctx, l, clearance)
	}
	if stored, err := c.keepRules(ctx, clearance.Origin(), clearance.File()); err != nil || !stored {
		return storage.Ack{Outcome: storage.Again}, err
	}
	if why := c.withinHostBudget(l, clearance); why != "" {
		return c.setAside(ctx, l, why)
	}
	permit, err := c.admit(ctx, l, clearance)
	if err != nil {
		c.Gate.Forget(clearance)
		return c.refuse(ctx, l, err)
	}
	if err := c.countIn(l, clearance); err != nil {
		c.Limits.Release(c.now(), permit)
		return c.refuse(ctx, l, err)
	}
	ticket, err := c.ticketFor(l, clearance, permit)
	if err != nil {
		c.Limits.Release(c.now(), permit)
		return storage.Ack{Outcome: storage.Again}, err
	}
	return c.visit(ctx, l, clearance, permit, ticket)
}

// visit makes the visit of a ticket, decides who is to blame if it fails, and handles
// its outcome.
func (c *Crawler) visit(ctx context.Context, l storage.Lease, cl robots.Clearance,
	permit politeness.Permit, ticket Ticket) (storage.Ack, error) {
	if f, ok := c.Fetcher.(Finisher); ok {
		defer f.Finish(ticket)
	}
	defer func() { ticket.stub.share.Close() }() // no step after this uses the body
	v := c.fetch(ctx, l, cl, ticket)
	entered := c.enterAnswer(ctx, v, ticket)
	c.blame(ctx, v)
	if isLocal(v) {
		c.tally.localFaults.Add(1)
		c.countFull(v)
	}
	if why := unmade(v, ticket); why != nil {
		return c.turnAway(ctx, v, permit, why)
	}
	if isLocal(v) {
		c.countOut(v.Lease, v.Clearance) // the visit will be repeated
	}
	ack, err := c.arrive(ctx, v, permit)
	return ack, errors.Join(err, entered)
}

// arrive follows what came of a visit.
func (c *Crawler) arrive(ctx context.Context, v *Visit, permit politeness.Permit) (storage.Ack, error) {
	c.tally.visit(v)
	c.Limits.Leave(permit, v.End)
	calling := c.callWaiting(ctx) // before the handler takes its time
	ack, err := c.receive(ctx, v)
	return ack, errors.Join(err, calling)
}

// clear asks scope again, and the robots gate: for the URL, or for its
// robots.txt if that must come first, or for a hop of somebody's robots.txt; and
// tdmrep.json, if the crawl has a purpose of which that speaks.
func (c *Crawler) clear(ctx context.Context, l storage.Lease) (robots.Clearance, error) {
	visit := l.Entry
	visit.URL = target(l.Entry)
	if err := c.Frontier.InScope(visit); err != nil { // it may be narrower than when the URL was found
		return robots.Clearance{}, err
	}
	if !l.For.IsZero() {
		return c.Gate.CheckHop(ctx, c.now(), l.URL, l.For)
	}
	clearance, err := c.Gate.Check(ctx, c.now(), target(l.Entry))
	if err != nil {
		return clearance, err
	}
	return c.reserve(ctx, l, clearance)
}

// isPage reports whether a visit is to a page, and not to a file for robots.
func isPage(l storage.Lease, cl robots.Clearance) bool {
	return !cl.ForRobots() && l.Source != storage.Robots && !isDetour(l, cl)
}

// countIn counts a page that is about to be visited, and returns why it, or a sitemap,
// may not be: a limit of the run.
func (c *Crawler) countIn(l storage.Lease, cl robots.Clearance) error {
	switch {
	case cl.ForRobots():
	case c.Settings.MaxBytes > 0 && c.bytes.Load() >= c.Settings.MaxBytes:
		return ErrBytes
	case isPage(l, cl):
		return c.page()
	}
	return nil
}

// countOut takes back the counting of a visit that was not made.
func (c *Crawler) countOut(l storage.Lease, cl robots.Clearance) {
	if isPage(l, cl) {
		c.unpage()
	}
}

// refuse says what becomes of a URL that was not cleared, or whose host is not
// due. That cost the host nothing.
func (c *Crawler) refuse(ctx context.Context, l storage.Lease, err error) (storage.Ack, error) {
	if c.Hooks.Refused != nil {
		c.Hooks.Refused(l, err)
	}
	if err := c.enterRefusal(ctx, l, err); err != nil {
		return storage.Ack{Outcome: storage.Again}, err
	}
	var (
		postponed *robots.PostponedError
		early     politeness.TooEarly
		busy      *politeness.Busy
		braked    *politeness.Braked
		paused    *politeness.Paused
		end       *robots.ChainEnd
		refusal   *robots.Refusal
		full      *bodymem.FullError
	)
	switch {
	case errors.As(err, &early):
		return c.restFirst(l, time.Duration(early)), nil
	case errors.As(err, &busy):
		return c.queueUp(ctx, l, busy)
	case errors.As(err, &braked):
		return c.putOffBraked(ctx, l, braked)
	case errors.As(err, &full):
		return c.putOff(ctx, l, c.now().Add(fullRest), false)
	case errors.Is(err, decorum.Local), errors.As(err, &paused):
		return storage.Ack{Outcome: storage.Again}, nil
	case errors.Is(err, decorum.OutOfScope):
		return storage.Ack{Outcome: storage.Parked}, nil
	case errors.As(err, &refusal):
		if err := c.heedRefusal(ctx, l.URL.Origin(), refusal.File); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
		c.tally.blocked.Add(1)
		return storage.Ack{Outcome: storage.Parked}, nil
	case errors.As(err, &postponed):
		return c.awaitRules(ctx, l, postponed, errors.Is(err, decorum.Pending))
	case errors.As(err, &end):
		return storage.Ack{Outcome: storage.Gone}, c.follow(ctx, l.URL, end.Lesson, nil)
	case errors.Is(err, decorum.Dropped):
		return storage.Ack{Outcome: storage.Gone}, nil
	}
	return storage.Ack{Outcome: storage.Again}, err
}

// restFirst gives back a lease whose host has to rest for so long, from now on.
func (c *Crawler) restFirst(l storage.Lease, rest time.Duration) storage.Ack {
	host := c.memos.advance(l, func(h storage.Host) storage.Host {
		h.Due, h.Gap = later(h.Due, c.now().Add(rest)), max(h.Gap, rest)
		return h
	})
	return storage.Ack{Outcome: storage.Again, Host: &host}
}

// recheck is when a worker that found a robots.txt being looked up by another
// has the gate asked again. Its hold may come after the one that the other
// lifted, so it is short.
const recheck = 5 * time.Second

// awaitRules puts off a URL whose origin is closed, and queues the hop that its
// robots.txt waits for. pending says that another worker is looking it up.
func (c *Crawler) awaitRules(ctx context.Context, l storage.Lease, postponed *robots.PostponedError, pending bool) (storage.Ack, error) {
	until, o := postponed.Until, l.URL.Origin()
	if pending {
		until = earlier(until, c.now().Add(recheck))
	}
	if !postponed.Hop.IsZero() {
		if err := c.queueHop(ctx, o.RobotsURL(), o, postponed); err != nil {
			return storage.Ack{Outcome: storage.Again}, err
		}
	}
	return c.putOff(ctx, l, until, postponed.Dormant)
}

// fetch makes the visit.
func (c *Crawler) fetch(ctx context.Context, l storage.Lease, cl robots.Clearance, t Ticket) *Visit {
	v := &Visit{Lease: l, Clearance: cl, before: c.memos.last(l), Start: c.now()}
	host := cl.URL().Origin().Host()
	ctx, end := c.hands.begin(ctx, l, cl)
	defer end()
	if v.Err = c.Brakes.Stopped(host, v.Start); v.Err == nil { // from now on it would be broken off
		v.Err = c.may(v.Start)
	}
	if v.Err == nil {
		lag := c.lag.begin()
		v.Response, v.Err = c.ask(ctx, t)
		v.lag = c.lag.end() - lag
	}
	v.End, v.Exchange, v.marked = c.now(), t.stub.exchange, t.isMarked()
	v.slots = t.stub.permit.Slots()
	if addr := t.stub.addr.Load(); addr != nil {
		v.addr = *addr
	}
	if v.Response != nil {
		v.Start, v.End = v.Response.Start, v.Response.End
	}
	v.share, v.bodySum = t.stub.share, bodySum(v.Response)
	if v.Response != nil && t.stub.spool != nil {
		v.spool, v.bodySum = t.stub.spool, t.stub.spool.SHA256
	}
	if isPage(l, cl) {
		c.readLazily(v)
	}
	v.brokenOff = v.Response == nil && (ctx.Err() != nil || isLocal(v) || t.stub.unwritten ||
		errors.Is(v.Err, errNotMarked) || errors.As(v.Err, new(*politeness.Braked)))
	return v
}

// ask lets the fetcher make the request, and catches a panic: of a callback, if
// the fetcher calls any.
func (c *Crawler) ask(ctx context.Context, t Ticket) (res *decorum.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, c.caught(p, t.URL())
		}
	}()
	return c.Fetcher.Fetch(ctx, t)
}
