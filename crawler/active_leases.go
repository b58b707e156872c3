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

// errLeaseExpired cancels a visit whose lease has expired: another process may be visiting the
// host.
var errLeaseExpired = errors.New("the lease has run out")

// An ActiveVisit is the URL that one worker is busy with.
type ActiveVisit struct {
	URL         decorum.URL // the leased URL
	Host        string      // host that the request goes to
	Kind        VisitKind   // what the request is to, once it is made
	LeasedAt    time.Time   // time of the lease
	RequestedAt time.Time   // start of the request; zero before it
}

// ListActiveVisits returns what the workers are busy with, longest first. Any goroutine may call it
// at any time.
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
	mu      sync.Mutex              // guards byToken and the leases in it
	byToken map[uint64]*activeLease // by storage.Lease.Token
}

// An activeLease is a lease that a worker is busy with, and what ends its visit.
type activeLease struct {
	ActiveVisit
	lease         storage.Lease
	expiryTimer   *time.Timer             // calls expire when the lease runs out
	expire        func()                  // cancels the visit with errLeaseExpired
	cancelRequest context.CancelCauseFunc // cancels the request in flight; nil if none
}

// addLease registers l and returns the context of its visit, which is cancelled when l expires. The
// caller must call removeLease.
func (h *activeLeases) addLease(ctx context.Context, l storage.Lease) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	expire := func() { cancel(errLeaseExpired) }
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byToken == nil {
		h.byToken = map[uint64]*activeLease{}
	}
	h.byToken[l.Token] = &activeLease{
		lease: l, expiryTimer: time.AfterFunc(time.Until(l.Expires), expire), expire: expire,
		ActiveVisit: ActiveVisit{URL: l.URL, Host: l.URL.Origin().Host(), LeasedAt: time.Now()},
	}
	return ctx
}

// removeLease stops the timer of l and releases its context.
func (h *activeLeases) removeLease(l storage.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if active := h.byToken[l.Token]; active != nil {
		active.expiryTimer.Stop()
		active.expire() // releases the context
		delete(h.byToken, l.Token)
	}
}

// isUnexpired reports whether l has not expired, by the clock: in a process that was stopped and
// continued, the timers fire later than that.
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

// beginRequest returns the context of the request of t, which is made for l now. The caller calls
// done when the request is over.
func (h *activeLeases) beginRequest(ctx context.Context, l storage.Lease,
	t Ticket) (requestCtx context.Context, done func()) {
	requestCtx, cancelRequest := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	active := h.byToken[l.Token]
	active.Host, active.Kind, active.RequestedAt, active.cancelRequest =
		t.URL().Origin().Host(), t.Kind(), time.Now(), cancelRequest
	return requestCtx, func() {
		h.mu.Lock()
		active.cancelRequest = nil
		h.mu.Unlock()
		cancelRequest(nil)
	}
}

// cancelRequestsToHosts cancels, with the error of reasonFor, the requests to hosts for which
// reasonFor returns one.
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

// renewLoop renews the active leases every third of their TTL until ctx is done, because a handler
// may take long. It renews them concurrently, so that one slow renewal delays no other.
func (h *activeLeases) renewLoop(ctx context.Context, f *frontier.Frontier) {
	callEvery(ctx, f.LeaseTTL()/3, func() {
		var renewing sync.WaitGroup
		for _, active := range h.all() {
			renewing.Go(func() { h.renewLease(ctx, f, active) })
		}
		renewing.Wait()
	})
}

// renewLease renews one lease. If the store no longer has it, its visit is cancelled. If it cannot
// be renewed for another reason, the visit continues until the lease expires.
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
	case err == nil && active.expiryTimer.Stop(): // otherwise it has expired
		active.lease.Expires = until
		active.expiryTimer.Reset(time.Until(until))
	}
}
