package gate

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// Purposes returns what the crawl is for.
func (g *Gate) Purposes() []string { return g.cfg.Purposes }

// CachedUsageSignals returns what the origin's robots.txt asks of the use of u, as far as the
// file is in mind: it does no I/O. After Check has judged a URL, it is.
func (g *Gate) CachedUsageSignals(u decorum.URL) aiuse.Signals {
	if s := g.cache.stateIfCached(u.Origin()); s != nil {
		return s.usageRules.SignalsForURL(u)
	}
	return nil
}

// PostponedReason says why the origin's pages cannot be visited now; nil if they can,
// or if it is time to ask for its robots.txt. Unlike Check it claims nothing.
func (g *Gate) PostponedReason(ctx context.Context, now time.Time, o decorum.Origin) (*OriginPostponedError, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil || !s.arePagesPostponed || !now.Before(s.expiresAt) {
		return nil, err
	}
	return g.postponedError(s, s.expiresAt, s.postponedReason), nil
}

// Peek returns the error that Check would return for u. If it is nil, Check would clear the visit
// to u if hasRules is true, and the one to its robots.txt if it is not. Peek claims nothing: nobody
// else has to wait for a lookup, and rules that hold until a page has been cleared by them go on to.
func (g *Gate) Peek(ctx context.Context, now time.Time, u decorum.URL) (hasRules bool, err error) {
	o := u.Origin()
	if o.IsZero() {
		return false, newGateError(u, decorum.Invalid, errors.New("no URL"))
	}
	e := g.cache.getOrCreateLocked(o, now)
	defer e.mu.Unlock()
	s, err := g.currentState(ctx, now, o, e)
	if err != nil {
		return false, err
	}
	if !s.hasRulesInForce(now) {
		return false, g.postponedPageError(now, u, s, &e.inFlightFetch)
	}
	if v := g.verdict(s, u); !v.Allowed {
		return true, disallowedError(u, v, s)
	}
	return true, nil
}

// CheckKnown returns the error of Check for u, as far as it follows from what is known of the
// robots.txt: a page waits for it, or its rules disallow u, though it may be time to ask for it
// again. Unlike Check it claims nothing, and knows nothing of lookups that are under way.
func (g *Gate) CheckKnown(ctx context.Context, now time.Time, u decorum.URL) error {
	s, err := g.lastKnownState(ctx, u.Origin())
	switch {
	case err != nil:
		return err
	case s.arePagesPostponed && now.Before(s.expiresAt):
		return g.postponedPageError(now, u, s, &fetchLease{})
	case s.rules == nil:
		return nil
	}
	if v := g.verdict(s, u); !v.Allowed {
		return disallowedError(u, v, s)
	}
	return nil
}

// LastFetchSummary returns what the Gate last learnt of an origin's robots.txt, however
// long ago. Its Outcome is OutcomeUnknown if that is nothing.
func (g *Gate) LastFetchSummary(ctx context.Context, o decorum.Origin) (FetchSummary, error) {
	if s := g.cache.stateIfCached(o); s != nil {
		return s.fetchSummary, nil
	}
	r, err := g.records.loadRecord(ctx, o)
	return g.compileState(&r, new(robots.File)).fetchSummary, err // what stands in the file makes no difference
}

// ExpiresAt returns until when what the Gate knows of an origin's robots.txt holds:
// after it, the next who wants to visit the origin makes it ask again. The time
// is zero if nothing was ever known.
func (g *Gate) ExpiresAt(ctx context.Context, o decorum.Origin) (time.Time, error) {
	s, err := g.lastKnownState(ctx, o)
	return s.expiresAt, err
}
