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

// An originsToWake is the origins that were turned away because something they share with
// others is busy, or by a brake, by host.
type originsToWake struct {
	mu           sync.Mutex
	byHost       map[string]map[decorum.Origin]uint64 // by the number of their arrival
	arrivalCount uint64
}

// lastArrivalNumber returns the number of the last coming.
func (w *originsToWake) lastArrivalNumber() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrivalCount
}

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

// removeUnlessNewer forgets an origin that waits no longer, unless it came after an arrival.
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

// takeHost returns the origins of a host, and forgets them.
func (w *originsToWake) takeHost(host string) []decorum.Origin {
	w.mu.Lock()
	defer w.mu.Unlock()
	origins := w.byHost[host]
	delete(w.byHost, host)
	return slices.Collect(maps.Keys(origins))
}

func (w *originsToWake) hosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.byHost))
}

// A waitlist knows which origins wait until something that their host shares is free, and which
// until a brake lets them be visited, and has the frontier hand them out again.
type waitlist struct {
	waitlistConfig
	originsAwaitingPermit originsToWake // who waits to be called
	brakedOrigins         originsToWake // whom brakes have put off
	brakesChanged         chan struct{} // the brakes have changed
}

type waitlistConfig struct {
	limiter  *politeness.Limiter
	brakes   *politeness.Brakes // nil: there are none
	frontier *frontier.Frontier // where origins are held
	now      func() time.Time
}

// postponeBusyLease lets a URL wait whose host found something busy: until it is called,
// or, if that is missed, until then.
func (w *waitlist) postponeBusyLease(ctx context.Context, l storage.Lease, until time.Time) (leaseOutcome, error) {
	w.originsAwaitingPermit.add(l.URL.Origin())
	result, err := w.requeueAndHoldOrigin(ctx, l, until, false)
	if from, ready := w.limiter.GrantedTurnStart(l.URL.Origin().Host()); ready && err == nil { // before it was put off
		err = w.frontier.Hold(commitContext(ctx), l.URL.Origin(), from, false)
	}
	return result, err
}

// wakeReadyHosts ends the waiting of hosts whose turn has come.
func (w *waitlist) wakeReadyHosts(ctx context.Context) error {
	for host, from := range w.limiter.TakeGrantedTurns() {
		if err := w.wakeHostOriginsAt(ctx, host, from); err != nil {
			return err
		}
	}
	return nil
}

// wakeOnHostOrBrakeChangeLoop calls those who wait when what another crawl did lets them come, or a
// change of brakes: all workers may be waiting for a lease. It ends when ctx is
// done.
func (w *waitlist) wakeOnHostOrBrakeChangeLoop(ctx context.Context) error {
	for {
		select {
		case <-w.limiter.ReadyHostsChanged():
			if err := w.wakeReadyHosts(ctx); err != nil {
				return err
			}
		case <-w.brakesChanged:
			if err := w.updateBrakedOriginHolds(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// wakeHostOriginsAt lets a host's origins come from a moment on.
func (w *waitlist) wakeHostOriginsAt(ctx context.Context, host string, from time.Time) error {
	for _, o := range w.originsAwaitingPermit.takeHost(host) {
		if err := w.frontier.Hold(commitContext(ctx), o, from, false); err != nil {
			return err
		}
		if from.After(w.now()) {
			w.originsAwaitingPermit.add(o) // it may be called again, for later
		}
	}
	return nil
}

// wakeAllWaitingOrigins ends all waiting, for a turn and for brakes: nobody would call, once
// this crawl is over. Whom a brake still stops is put off again by the next.
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

// requeueAndHoldOrigin gives a lease back whose origin is not to be asked before until, for a
// reason that is not its host's rest: the host's clock stays as it is.
func (w *waitlist) requeueAndHoldOrigin(ctx context.Context, l storage.Lease, until time.Time, suspended bool) (leaseOutcome, error) {
	if l.RobotsFor == l.URL.Origin() { // a redirect of a robots.txt goes ahead of any hold of its own origin
		return leaseOutcome{outcome: storage.RetryAt, notBefore: timecmp.Earlier(until, w.now().Add(recheckDelay))}, nil
	}
	return leaseOutcome{outcome: storage.Requeue}, w.frontier.Hold(ctx, l.URL.Origin(), until, suspended)
}

// maxBrakeHold is for how long an origin is put off by a brake: then it is asked again
// whether it still is, which costs no request. Who put it off lets it come when the
// brake is lifted; but of several processes, that one may have died by then.
const maxBrakeHold = 10 * time.Minute

// postponeBrakedLease lets a URL wait until a brake lets it be visited: until then, or
// until the brakes change. Nobody waits for a host that is stopped.
func (w *waitlist) postponeBrakedLease(ctx context.Context, l storage.Lease, d decorum.Decision) (result leaseOutcome, err error) {
	origin := l.URL.Origin()
	w.brakedOrigins.add(origin)
	brake, _ := politeness.BrakeOf(d)
	until := w.brakeHoldEnd(d.Until, brake.Until)
	if d.Action == decorum.Suspend {
		result, err = w.requeueAndHoldOrigin(ctx, l, until, true)
	} else {
		result, err = w.postponeBusyLease(ctx, l, until)
	}
	if b, _ := w.brakes.ForHost(origin.Host(), w.now()); b != brake && err == nil { // before it was put off
		err = w.frontier.Hold(commitContext(ctx), origin, time.Time{}, false)
	}
	return result, err
}

// brakeHoldEnd returns until when an origin is put off: the earliest of these times, of
// those that are one, or for as long as any is.
func (w *waitlist) brakeHoldEnd(times ...time.Time) time.Time {
	until := w.now().Add(maxBrakeHold)
	for _, t := range times {
		if !t.IsZero() {
			until = timecmp.Earlier(until, t)
		}
	}
	return until
}

// updateBrakedOriginHolds lets the origins that were put off by brakes come again, by those that
// hold now.
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
