package crawler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// An originsToWake is the origins that were turned away because something they share with
// others is busy, or by a brake, by host.
type originsToWake struct {
	mu      sync.Mutex
	origins map[string]map[decorum.Origin]uint64 // with the number of the coming
	comings uint64
}

// last returns the number of the last coming.
func (w *originsToWake) last() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.comings
}

func (w *originsToWake) add(o decorum.Origin) {
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
func (w *originsToWake) leave(o decorum.Origin, coming uint64) {
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
func (w *originsToWake) take(host string) []decorum.Origin {
	w.mu.Lock()
	defer w.mu.Unlock()
	origins := w.origins[host]
	delete(w.origins, host)
	return slices.Collect(maps.Keys(origins))
}

func (w *originsToWake) hosts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.origins))
}

// queueUp lets a URL wait whose host found something busy: until it is called,
// or, if that is missed, until then.
func (c *Crawler) queueUp(ctx context.Context, l storage.Lease, busy *politeness.Busy) (storage.Ack, error) {
	c.originsAwaitingPermit.add(l.URL.Origin())
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
	for _, o := range c.originsAwaitingPermit.take(host) {
		if err := c.Frontier.Hold(afterwards(ctx), o, from, false); err != nil {
			return err
		}
		if from.After(c.now()) {
			c.originsAwaitingPermit.add(o) // it may be called again, for later
		}
	}
	return nil
}

// dissolve ends all waiting, for a turn and for brakes: nobody would call, once
// this crawl is over. Whom a brake still stops is put off again by the next.
func (c *Crawler) dissolve(ctx context.Context) error {
	for _, waiting := range []*originsToWake{&c.originsAwaitingPermit, &c.braked} {
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
