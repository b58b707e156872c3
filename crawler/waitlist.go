package crawler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// An originsToWake is a set of origins, by host, that were refused because of a shared resource or
// a brake. Arrivals are numbered, so that an origin which arrives during a decision is not removed
// by it.
type originsToWake struct {
	mu           sync.Mutex                           // guards byHost, the maps in it, and arrivalCount
	byHost       map[string]map[decorum.Origin]uint64 // arrival number of each origin, by host
	arrivalCount uint64                               // the number of the latest arrival
}

// lastArrivalNumber returns the number of the latest arrival, 0 before the first.
func (w *originsToWake) lastArrivalNumber() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrivalCount
}

// add records that o waits, under a new arrival number.
func (w *originsToWake) add(o decorum.Origin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byHost == nil {
		w.byHost = map[string]map[decorum.Origin]uint64{}
	}
	if w.byHost[o.Host()] == nil {
		w.byHost[o.Host()] = map[decorum.Origin]uint64{}
	}
	w.arrivalCount++
	w.byHost[o.Host()][o] = w.arrivalCount
}

// removeUnlessNewer removes o, unless it arrived after the arrival with that number.
func (w *originsToWake) removeUnlessNewer(o decorum.Origin, arrival uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if origins := w.byHost[o.Host()]; origins != nil && origins[o] <= arrival {
		delete(origins, o)
		if len(origins) == 0 {
			delete(w.byHost, o.Host())
		}
	}
}

// takeHost removes the origins of host and returns them.
func (w *originsToWake) takeHost(host string) []decorum.Origin {
	w.mu.Lock()
	defer w.mu.Unlock()
	origins := w.byHost[host]
	delete(w.byHost, host)
	return slices.Collect(maps.Keys(origins))
}

// hosts returns the hosts of the waiting origins.
func (w *originsToWake) hosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.byHost))
}

// A waitlist holds the origins that wait for a resource their host shares, or for a brake, and
// releases their holds in the frontier when the wait is over.
type waitlist struct {
	waitlistConfig
	originsAwaitingPermit originsToWake // refused a permit
	brakedOrigins         originsToWake // refused by a brake
	brakesChanged         chan struct{} // receives after each change of brakes; capacity 1
}

type waitlistConfig struct {
	limiter  *politeness.Limiter
	brakes   *politeness.Brakes // nil: there are no brakes
	frontier *frontier.Frontier // keeps the holds
	// closeStoppedConns closes the idle connections to hosts that a brake stops.
	closeStoppedConns func()
	now               func() time.Time
}

// postponeBusyLease requeues l and holds its origin until the limiter grants its host a turn, or
// until the given time in case that wake-up is missed.
func (w *waitlist) postponeBusyLease(ctx context.Context, l storage.Lease, until time.Time) (leaseOutcome, error) {
	w.originsAwaitingPermit.add(l.URL.Origin())
	result, err := w.requeueAndHoldOrigin(ctx, l, until, false)
	// The limiter may have granted the turn before the hold was set: release the hold now.
	if from, ready := w.limiter.GrantedTurnStart(l.URL.Origin().Host()); ready && err == nil {
		err = w.frontier.Hold(commitContext(ctx), l.URL.Origin(), from, false)
	}
	return result, err
}

// wakeReadyHosts releases the origins of all hosts that the limiter has granted a turn.
func (w *waitlist) wakeReadyHosts(ctx context.Context) error {
	for host, from := range w.limiter.TakeGrantedTurns() {
		if err := w.wakeHostOriginsAt(ctx, host, from); err != nil {
			return err
		}
	}
	return nil
}

// wakeOnHostOrBrakeChangeLoop releases holds when another crawl frees a shared resource or the
// brakes change: all workers may be waiting for a lease then. It also closes connections after a change
// of the brakes, whose callback must not block. It returns when ctx is done.
func (w *waitlist) wakeOnHostOrBrakeChangeLoop(ctx context.Context) error {
	for {
		select {
		case <-w.limiter.ReadyHostsChanged():
			if err := w.wakeReadyHosts(ctx); err != nil {
				return err
			}
		case <-w.brakesChanged:
			w.closeStoppedConns()
			if err := w.updateBrakedOriginHolds(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// wakeHostOriginsAt lets the waiting origins of host be visited from a time on.
func (w *waitlist) wakeHostOriginsAt(ctx context.Context, host string, from time.Time) error {
	for _, o := range w.originsAwaitingPermit.takeHost(host) {
		if err := w.frontier.Hold(commitContext(ctx), o, from, false); err != nil {
			return err
		}
		if from.After(w.now()) {
			w.originsAwaitingPermit.add(o) // the limiter may move the turn to a later time
		}
	}
	return nil
}

// wakeAllWaitingOrigins releases all waiting origins when the crawl ends, because no later wake-up
// would reach them. The next run holds again those that a brake still stops.
func (w *waitlist) wakeAllWaitingOrigins(ctx context.Context) error {
	for _, waiting := range []*originsToWake{&w.originsAwaitingPermit, &w.brakedOrigins} {
		for _, host := range waiting.hosts() {
			for _, o := range waiting.takeHost(host) {
				if err := w.frontier.Hold(commitContext(ctx), o, time.Time{}, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// requeueAndHoldOrigin requeues l and holds its origin until a time, for a reason other than the
// host's rest: the host's clock stays unchanged.
func (w *waitlist) requeueAndHoldOrigin(ctx context.Context, l storage.Lease, until time.Time,
	suspended bool) (leaseOutcome, error) {
	// A redirect of a robots.txt is handed out in spite of a hold of its own origin, so it needs a
	// retry time of its own.
	if l.RobotsFor == l.URL.Origin() {
		return leaseOutcome{outcome: storage.RetryAt, notBefore: timecmp.Earlier(until, w.now().Add(recheckDelay))}, nil
	}
	return leaseOutcome{outcome: storage.Requeue}, w.frontier.Hold(ctx, l.URL.Origin(), until, suspended)
}

// maxBrakeHold bounds how long a brake holds an origin before it is checked again, which sends no
// request. The process that set the hold releases it when the brake is lifted, but that process may
// have died.
const maxBrakeHold = 10 * time.Minute

// postponeBrakedLease requeues l and holds its origin until the brake allows a visit or the brakes
// change. A stopped host's origin is suspended: no run waits for it.
func (w *waitlist) postponeBrakedLease(ctx context.Context, l storage.Lease,
	d decorum.Decision) (result leaseOutcome, err error) {
	origin := l.URL.Origin()
	w.brakedOrigins.add(origin)
	brake, _ := politeness.BrakeOf(d)
	until := w.brakeHoldEnd(d.Until, brake.Until)
	if d.Action == decorum.Suspend {
		result, err = w.requeueAndHoldOrigin(ctx, l, until, true)
	} else {
		result, err = w.postponeBusyLease(ctx, l, until)
	}
	// The brakes may have changed before the hold was set: release the hold now.
	if b, _ := w.brakes.ForHost(origin.Host(), w.now()); b != brake && err == nil {
		err = w.frontier.Hold(commitContext(ctx), origin, time.Time{}, false)
	}
	return result, err
}

// brakeHoldEnd returns the earliest of times, but at most maxBrakeHold from now. It ignores zero
// times.
func (w *waitlist) brakeHoldEnd(times ...time.Time) time.Time {
	until := w.now().Add(maxBrakeHold)
	for _, t := range times {
		if !t.IsZero() {
			until = timecmp.Earlier(until, t)
		}
	}
	return until
}

// updateBrakedOriginHolds adapts the holds of origins that a brake refused to the brakes in force
// now.
func (w *waitlist) updateBrakedOriginHolds(ctx context.Context) error {
	for _, host := range w.brakedOrigins.hosts() {
		until, b := time.Time{}, politeness.Brake{}
		if b, _ = w.brakes.ForHost(host, w.now()); b.Stop {
			until = w.brakeHoldEnd(b.Until)
		}
		for _, o := range w.brakedOrigins.takeHost(host) {
			if b.Stop {
				w.brakedOrigins.add(o)
			}
			if err := w.frontier.Hold(commitContext(ctx), o, until, b.Stop); err != nil {
				return err
			}
		}
	}
	return nil
}
