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
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// errLapsed ends a visit whose lease has run out: by now another process may be
// at the host.
var errLapsed = errors.New("the lease has run out")

// A Hand is what one worker is busy with.
type Hand struct {
	URL     decorum.URL    // as it is queued
	Source  storage.Source // how it was found
	Host    string         // that is asked for it, or for what must come first
	Robots  bool           // it is a robots.txt that must come first
	Since   time.Time      // when it was leased
	Started time.Time      // when the request was made; zero: not yet
}

// InHand returns what the crawl is busy with now, what it has had longest first.
// It may be called at any time.
func (c *Crawler) InHand() []Hand {
	c.hands.mu.Lock()
	defer c.hands.mu.Unlock()
	all := make([]Hand, 0, len(c.hands.held))
	for _, h := range c.hands.held {
		all = append(all, h.Hand)
	}
	slices.SortFunc(all, func(a, b Hand) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.URL.String(), b.URL.String()))
	})
	return all
}

// hands holds the leases that workers are busy with.
type hands struct {
	mu   sync.Mutex
	held map[uint64]*held // by token
}

type held struct {
	Hand
	lease    storage.Lease
	lapse    *time.Timer             // ends the visit when the lease runs out
	end      func()                  // likewise, at once
	breakOff context.CancelCauseFunc // the request that is under way; nil: none is
}

// take takes a lease, and returns the context of its visit. leave must be called.
func (h *hands) take(ctx context.Context, l storage.Lease) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(errLapsed) }
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[uint64]*held{}
	}
	h.held[l.Token] = &held{lease: l, lapse: time.AfterFunc(time.Until(l.Expires), end), end: end,
		Hand: Hand{URL: l.URL, Source: l.Source, Host: l.URL.Origin().Host(), Since: time.Now()}}
	return ctx
}

func (h *hands) leave(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.held[l.Token]; held != nil {
		held.lapse.Stop()
		held.end() // what its context holds is free
		delete(h.held, l.Token)
	}
}

// holds reports whether the lease has not run out. A process that was stopped
// learns so by it, before its timers do.
func (h *hands) holds(l storage.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.held[l.Token]
	if held == nil {
		return false
	}
	if time.Now().Before(held.lease.Expires) {
		return true
	}
	held.end()
	return false
}

// begin returns the context of a request that is made for l now, as cl clears it.
// end says that it is over.
func (h *hands) begin(ctx context.Context, l storage.Lease, cl robots.Clearance) (visit context.Context, end func()) {
	visit, breakOff := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.held[l.Token]
	held.Host, held.Robots, held.Started, held.breakOff = cl.URL().Origin().Host(), cl.ForRobots(), time.Now(), breakOff
	return visit, func() {
		h.mu.Lock()
		held.breakOff = nil
		h.mu.Unlock()
		breakOff(nil)
	}
}

// breakOff ends the requests to hosts for which why returns a reason.
func (h *hands) breakOff(why func(host string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, held := range h.held {
		if held.breakOff == nil {
			continue
		}
		if err := why(held.Host); err != nil {
			held.breakOff(err)
		}
	}
}

func (h *hands) all() []*held {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.held))
}

// keep renews the leases in hand until ctx is done: a handler may take its
// time. It renews them side by side, so that one that cannot be renewed for now
// holds back no other.
func (h *hands) keep(ctx context.Context, f *frontier.Frontier) {
	tick := time.NewTicker(f.LeaseTTL() / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			var renewing sync.WaitGroup
			for _, held := range h.all() {
				renewing.Go(func() { h.renew(ctx, f, held) })
			}
			renewing.Wait()
		case <-ctx.Done():
			return
		}
	}
}

// renew renews a lease in hand. If it is gone, so is its visit; if it cannot be
// renewed, the visit goes on as long as the lease.
func (h *hands) renew(ctx context.Context, f *frontier.Frontier, held *held) {
	ctx, cancel := context.WithTimeout(ctx, f.LeaseTTL()/3)
	defer cancel()
	until := time.Now().Add(f.LeaseTTL())
	err := f.Renew(ctx, held.lease)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, storage.ErrStale):
		held.end()
	case err == nil && held.lapse.Stop(): // else it has run out, as far as we know
		held.lease.Expires = until
		held.lapse.Reset(time.Until(until))
	}
}
