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
	"github.com/decorum-crawler/decorum/storage"
)

// errLeaseExpired ends a visit whose lease has run out: by now another process may be
// at the host.
var errLeaseExpired = errors.New("the lease has run out")

// An ActiveVisit is what one worker is busy with.
type ActiveVisit struct {
	URL         decorum.URL // as it is queued
	Host        string      // that is asked for it, or for what must come first
	Kind        VisitKind   // what the request is to, when one was made
	LeasedAt    time.Time   // when it was leased
	RequestedAt time.Time   // when the request was made; zero: not yet
}

// ListActiveVisits returns what the crawl is busy with now, what it has had longest first.
// It may be called at any time.
func (c *Crawler) ListActiveVisits() []ActiveVisit {
	c.activeLeases.mu.Lock()
	defer c.activeLeases.mu.Unlock()
	all := make([]ActiveVisit, 0, len(c.activeLeases.byToken))
	for _, h := range c.activeLeases.byToken {
		all = append(all, h.ActiveVisit)
	}
	slices.SortFunc(all, func(a, b ActiveVisit) int {
		return cmp.Or(a.LeasedAt.Compare(b.LeasedAt), cmp.Compare(a.URL.String(), b.URL.String()))
	})
	return all
}

// activeLeases holds the leases that workers are busy with.
type activeLeases struct {
	mu      sync.Mutex
	byToken map[uint64]*activeLease // by token
}

type activeLease struct {
	ActiveVisit
	lease         storage.Lease
	expiryTimer   *time.Timer             // ends the visit when the lease runs out
	expire        func()                  // likewise, at once
	cancelRequest context.CancelCauseFunc // the request that is under way; nil: none is
}

// addLease takes a lease, and returns the context of its visit. removeLease must be called.
func (h *activeLeases) addLease(ctx context.Context, l storage.Lease) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	expire := func() { cancel(errLeaseExpired) }
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byToken == nil {
		h.byToken = map[uint64]*activeLease{}
	}
	h.byToken[l.Token] = &activeLease{lease: l, expiryTimer: time.AfterFunc(time.Until(l.Expires), expire), expire: expire,
		ActiveVisit: ActiveVisit{URL: l.URL, Host: l.URL.Origin().Host(), LeasedAt: time.Now()}}
	return ctx
}

func (h *activeLeases) removeLease(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if active := h.byToken[l.Token]; active != nil {
		active.expiryTimer.Stop()
		active.expire() // what its context holds is free
		delete(h.byToken, l.Token)
	}
}

// isUnexpired reports whether the lease has not run out. A process that was stopped
// learns so by it, before its timers do.
func (h *activeLeases) isUnexpired(l storage.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	active := h.byToken[l.Token]
	if active == nil {
		return false
	}
	if time.Now().Before(active.lease.Expires) {
		return true
	}
	active.expire()
	return false
}

// beginRequest returns the context of the request of t, which is made for l now.
// done says that it is over.
func (h *activeLeases) beginRequest(ctx context.Context, l storage.Lease, t Ticket) (requestCtx context.Context, done func()) {
	requestCtx, cancelRequest := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	active := h.byToken[l.Token]
	active.Host, active.Kind, active.RequestedAt, active.cancelRequest = t.URL().Origin().Host(), t.Kind(), time.Now(), cancelRequest
	return requestCtx, func() {
		h.mu.Lock()
		active.cancelRequest = nil
		h.mu.Unlock()
		cancelRequest(nil)
	}
}

// cancelRequestsToHosts ends the requests to hosts for which reasonFor returns a reason.
func (h *activeLeases) cancelRequestsToHosts(reasonFor func(host string) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, active := range h.byToken {
		if active.cancelRequest == nil {
			continue
		}
		if err := reasonFor(active.Host); err != nil {
			active.cancelRequest(err)
		}
	}
}

func (h *activeLeases) all() []*activeLease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.byToken))
}

// renewLoop renews the leases in hand until ctx is done: a handler may take its
// time. It renews them side by side, so that one that cannot be renewed for now
// holds back no other.
func (h *activeLeases) renewLoop(ctx context.Context, f *frontier.Frontier) {
	callEvery(ctx, f.LeaseTTL()/3, func() {
		var renewing sync.WaitGroup
		for _, active := range h.all() {
			renewing.Go(func() { h.renewLease(ctx, f, active) })
		}
		renewing.Wait()
	})
}

// renewLease renews a lease in hand. If it is gone, so is its visit; if it cannot be
// renewed, the visit goes on as long as the lease.
func (h *activeLeases) renewLease(ctx context.Context, f *frontier.Frontier, active *activeLease) {
	ctx, cancel := context.WithTimeout(ctx, f.LeaseTTL()/3)
	defer cancel()
	until := time.Now().Add(f.LeaseTTL())
	err := f.Renew(ctx, active.lease)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, storage.ErrStaleLease):
		active.expire()
	case err == nil && active.expiryTimer.Stop(): // else it has run out, as far as we know
		active.lease.Expires = until
		active.expiryTimer.Reset(time.Until(until))
	}
}
