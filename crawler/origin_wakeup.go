package crawler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// An originsToWake is the origins that were turned away because something they share with
// others is busy, or by a brake, by host.
type originsToWake struct {
	mu           sync.Mutex
	byHost       map[string]map[decorum.Origin]uint64 // with the number of the coming
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

// removeUnlessNewer forgets an origin that waits no longer, unless it came after a coming.
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

// postponeBusyLease lets a URL wait whose host found something busy: until it is called,
// or, if that is missed, until then.
func (c *Crawler) postponeBusyLease(ctx context.Context, l storage.Lease, until time.Time) (storage.Ack, error) {
	c.originsAwaitingPermit.add(l.URL.Origin())
	ack, err := c.requeueAndHoldOrigin(ctx, l, until, false)
	if from, ready := c.Limiter.GrantedTurnStart(l.URL.Origin().Host()); ready && err == nil { // before it was put off
		err = c.Frontier.Hold(commitContext(ctx), l.URL.Origin(), from, false)
	}
	return ack, err
}

// wakeReadyHosts ends the waiting of hosts whose turn has come.
func (c *Crawler) wakeReadyHosts(ctx context.Context) error {
	for host, from := range c.Limiter.TakeReadyHosts() {
		if err := c.wakeHostOriginsAt(ctx, host, from); err != nil {
			return err
		}
	}
	return nil
}

// wakeOnHostOrBrakeChangeLoop calls those who wait when what another crawl did lets them come, or a
// change of brakes: all workers may be waiting for a lease. It ends when ctx is
// done.
func (c *Crawler) wakeOnHostOrBrakeChangeLoop(ctx context.Context) error {
	for {
		select {
		case <-c.Limiter.ReadyHostsChanged():
			if err := c.wakeReadyHosts(ctx); err != nil {
				return err
			}
		case <-c.brakesChanged:
			if err := c.updateBrakedOriginHolds(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// wakeHostOriginsAt lets a host's origins come from a moment on.
func (c *Crawler) wakeHostOriginsAt(ctx context.Context, host string, from time.Time) error {
	for _, o := range c.originsAwaitingPermit.takeHost(host) {
		if err := c.Frontier.Hold(commitContext(ctx), o, from, false); err != nil {
			return err
		}
		if from.After(c.now()) {
			c.originsAwaitingPermit.add(o) // it may be called again, for later
		}
	}
	return nil
}

// wakeAllWaitingOrigins ends all waiting, for a turn and for brakes: nobody would call, once
// this crawl is over. Whom a brake still stops is put off again by the next.
func (c *Crawler) wakeAllWaitingOrigins(ctx context.Context) error {
	for _, waiting := range []*originsToWake{&c.originsAwaitingPermit, &c.brakedOrigins} {
		for _, host := range waiting.hosts() {
			for _, o := range waiting.takeHost(host) {
				if err := c.Frontier.Hold(commitContext(ctx), o, time.Time{}, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
