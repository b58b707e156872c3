package crawler

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

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
	c.hand.mu.Lock()
	defer c.hand.mu.Unlock()
	hands := make([]Hand, 0, len(c.hand.held))
	for _, h := range c.hand.held {
		hands = append(hands, h.Hand)
	}
	slices.SortFunc(hands, func(a, b Hand) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.URL.String(), b.URL.String()))
	})
	return hands
}

// A hand holds the leases that workers are busy with.
type hand struct {
	mu   sync.Mutex
	held map[uint64]*held // by token
}

type held struct {
	Hand
	lease    storage.Lease
	breakOff context.CancelCauseFunc // the request that is under way; nil: none is
}

func (h *hand) take(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[uint64]*held{}
	}
	h.held[l.Token] = &held{lease: l, Hand: Hand{URL: l.URL, Source: l.Source, Host: l.URL.Origin().Host(), Since: time.Now()}}
}

func (h *hand) leave(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, l.Token)
}

// begin returns the context of a request that is made for l now, as cl clears it.
// end says that it is over.
func (h *hand) begin(ctx context.Context, l storage.Lease, cl robots.Clearance) (visit context.Context, end func()) {
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
func (h *hand) breakOff(why func(host string) error) {
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

func (h *hand) leases() []storage.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := make([]storage.Lease, 0, len(h.held))
	for _, held := range h.held {
		leases = append(leases, held.lease)
	}
	return leases
}

// keep renews the leases in hand until ctx is done: a handler may take its
// time.
func (h *hand) keep(ctx context.Context, f *frontier.Frontier) {
	tick := time.NewTicker(f.LeaseTTL() / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, l := range h.leases() {
				// A lease that is gone is noticed by its ack.
				_ = f.Renew(ctx, l)
			}
		case <-ctx.Done():
			return
		}
	}
}
