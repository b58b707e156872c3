package crawler

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// asideFor is how long an origin is set aside for a reason of our own, until it
// is looked at again. That costs no request: the reason may be gone by then.
const asideFor = time.Minute

// longestShut is for how long a host is left alone at a time that is outside
// its hours: they may be changed meanwhile, or the clocks.
const longestShut = 10 * time.Minute

// admit asks for a permit: the host must be within its hours, and due, by the
// store's clock and by the limiter's, which knows of other crawls, and so must its
// address. Where the rest that the store knows of is shorter than the Crawl-delay
// that is known now (another crawl learnt it, a crash came between learning it and
// the ack, or it is for other hours), the host rests for that first.
func (c *Crawler) admit(ctx context.Context, l storage.Lease, cl robots.Clearance) (politeness.Permit, error) {
	origin, now := cl.URL().Origin(), c.now()
	if err := c.may(now); err != nil {
		return politeness.Permit{}, err
	}
	policy := c.policyOf(origin.Host(), now)
	delay, opens, err := c.pace(ctx, origin, now)
	if err != nil {
		return politeness.Permit{}, err
	}
	opens = later(opens, policy.Window.Opens(now))
	if opens.After(now) {
		return politeness.Permit{}, &robots.Closed{Until: earlier(opens, now.Add(longestShut)), Why: "outside the hours of visits"}
	}
	if err := tooSlow(policy, delay, now); err != nil && !cl.ForRobots() {
		return politeness.Permit{}, err
	}
	brake, err := c.slow(l, origin.Host(), now)
	if err != nil {
		return politeness.Permit{}, err
	}
	if l.Host.Gap < delay {
		return politeness.Permit{}, politeness.TooEarly(delay)
	}
	if err := c.Rests.meet(ctx, c.Limits, origin.Host(), now); err != nil {
		return politeness.Permit{}, err
	}
	slots := min(max(l.Host.Slots, 1), policy.Concurrency) // it may have been lowered since
	if delay > 0 || brake.Delay > 0 {
		slots = 1 // DELAY-12; what the store says may be of before it was learnt
	}
	inLine, inBraked := c.line.last(), c.braked.last()
	permit, err := c.Limits.Request(now, origin.Host(),
		politeness.Wish{NotBefore: l.Host.Due, Slots: slots, Gap: max(policy.Delay, delay, brake.Delay)})
	var busy *politeness.Busy
	if brake.Delay > 0 && errors.As(err, &busy) {
		err = &politeness.Braked{Brake: brake, Until: busy.Until} // if it is lifted, it may be sooner
	}
	if err == nil { // what waits for this permit to come back came after it was asked for
		c.line.leave(l.URL.Origin(), inLine)
		c.braked.leave(l.URL.Origin(), inBraked)
	}
	return permit, err
}

// putOff gives a lease back whose origin is not to be asked before until, for a
// reason that is not its host's rest: the host's clock stays as it is.
func (c *Crawler) putOff(ctx context.Context, l storage.Lease, until time.Time, dormant bool) (storage.Ack, error) {
	if l.For == l.URL.Origin() { // a robots.txt hop goes ahead of any hold of its own origin
		return storage.Ack{Outcome: storage.Later, At: earlier(until, c.now().Add(recheck))}, nil
	}
	return storage.Ack{Outcome: storage.Again}, c.Frontier.Hold(ctx, l.URL.Origin(), until, dormant)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// A line is the origins that were turned away because something they share with
// others is busy, or by a brake, by host.
type line struct {
	mu      sync.Mutex
	origins map[string]map[decorum.Origin]uint64 // with the number of the coming
	comings uint64
}

// last returns the number of the last coming.
func (w *line) last() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.comings
}

func (w *line) add(o decorum.Origin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.origins == nil {
		w.origins = map[string]map[decorum.Origin]uint64{}
	}
	if w.origins[o.Host()] == nil {
		w.origins[o.Host()] = map[decorum.Origin]uint64{}
	}
	w.comings++
	w.origins[o.Host()][o] = w.comings
}

// leave forgets an origin that waits no longer, unless it came after a coming.
func (w *line) leave(o decorum.Origin, coming uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if origins := w.origins[o.Host()]; origins != nil && origins[o] <= coming {
		delete(origins, o)
		if len(origins) == 0 {
			delete(w.origins, o.Host())
		}
	}
}

// take returns the origins of a host, and forgets them.
func (w *line) take(host string) []decorum.Origin {
	w.mu.Lock()
	defer w.mu.Unlock()
	origins := w.origins[host]
	delete(w.origins, host)
	return slices.Collect(maps.Keys(origins))
}

func (w *line) hosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.origins))
}

// queueUp lets a URL wait whose host found something busy: until it is called,
// or, if that is missed, until then.
func (c *Crawler) queueUp(ctx context.Context, l storage.Lease, busy *politeness.Busy) (storage.Ack, error) {
	c.line.add(l.URL.Origin())
	ack, err := c.putOff(ctx, l, busy.Until, false)
	if from, called := c.Limits.Called(l.URL.Origin().Host()); called && err == nil { // before it was put off
		err = c.Frontier.Hold(afterwards(ctx), l.URL.Origin(), from, false)
	}
	return ack, err
}

// callWaiting ends the waiting of hosts whose turn has come.
func (c *Crawler) callWaiting(ctx context.Context) error {
	for host, from := range c.Limits.Calls() {
		if err := c.call(ctx, host, from); err != nil {
			return err
		}
	}
	return nil
}

// answer calls those who wait when what another crawl did lets them come, or a
// change of brakes: all workers may be waiting for a lease. It ends when ctx is
// done.
func (c *Crawler) answer(ctx context.Context) error {
	for {
		select {
		case <-c.Limits.Wake():
			if err := c.callWaiting(ctx); err != nil {
				return err
			}
		case <-c.rebraked:
			if err := c.release(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// call lets a host's origins come from a moment on.
func (c *Crawler) call(ctx context.Context, host string, from time.Time) error {
	for _, o := range c.line.take(host) {
		if err := c.Frontier.Hold(afterwards(ctx), o, from, false); err != nil {
			return err
		}
		if from.After(c.now()) {
			c.line.add(o) // it may be called again, for later
		}
	}
	return nil
}

// dissolve ends all waiting, for a turn and for brakes: nobody would call, once
// this crawl is over. Whom a brake still stops is put off again by the next.
func (c *Crawler) dissolve(ctx context.Context) error {
	for _, waiting := range []*line{&c.line, &c.braked} {
		for _, host := range waiting.hosts() {
			for _, o := range waiting.take(host) {
				if err := c.Frontier.Hold(afterwards(ctx), o, time.Time{}, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// turnAway takes back a visit that was refused when it was about to connect, as
// unmade says: nothing was sent, and nothing is held against anybody.
func (c *Crawler) turnAway(ctx context.Context, v *Visit, permit politeness.Permit, why error) (storage.Ack, error) {
	c.Limits.Release(c.now(), permit)
	c.Gate.Forget(v.Clearance)
	c.untake(v.Lease, v.Clearance)
	return c.refuse(ctx, v.Lease, why)
}

// policyOf returns the policy for host, and tells once that an override of it
// has expired.
func (c *Crawler) policyOf(host string, now time.Time) politeness.Policy {
	if o, ok := c.Policy.Hosts[host]; ok && o.Expired(now) {
		if _, told := c.lapsed.LoadOrStore(host, true); !told {
			c.Log.Warn("the override of a host has expired and is not applied", "host", host,
				"expired", o.Expires, "reason", o.Reason)
		}
	}
	return c.Policy.For(host, now)
}

// announce logs whether the crawl has to wait for its hours, which overrides are
// in force, and which no longer are.
func (c *Crawler) announce(now time.Time) {
	if w := c.Policy.Window; !w.Open(now) {
		c.Log.Info("outside the hours of visits", "window", w, "opens", w.Opens(now))
	}
	for _, host := range slices.Sorted(maps.Keys(c.Policy.Hosts)) {
		policy, o := c.policyOf(host, now), c.Policy.Hosts[host]
		if o.Expired(now) {
			continue
		}
		expires := "never"
		if !o.Expires.IsZero() {
			expires = o.Expires.Format(time.RFC3339)
		}
		c.Log.Info("the policy is overridden for a host", "host", host, "delay", max(policy.Delay, 0),
			"adaptive", max(policy.Adaptive, 0), "concurrency", policy.Concurrency, "window", policy.Window,
			"reason", cmp.Or(o.Reason, "none given"), "expires", expires)
	}
}
