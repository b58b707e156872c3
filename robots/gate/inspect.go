package gate

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// Purposes returns Config.Purposes. The caller must not change them.
func (g *Gate) Purposes() []string { return g.cfg.Purposes }

// CachedUsageSignals returns the preferences of the origin's robots.txt about the use of u. It uses
// only cached rules and does no I/O; the rules are cached once Check has succeeded for the origin.
func (g *Gate) CachedUsageSignals(u decorum.URL) aiuse.Signals {
	if s := g.cache.stateIfCached(u.Origin()); s != nil {
		return s.usageRules.SignalsForURL(u)
	}
	return nil
}

// PostponedReason returns why the pages of the origin have to wait now. It returns nil if they need
// not wait, or if the robots.txt should be fetched now. Unlike Check it takes no fetch lease.
func (g *Gate) PostponedReason(ctx context.Context, now time.Time, o decorum.Origin) (*OriginPostponedError, error) {
	s, err := g.lastKnownState(ctx, o)
	if err != nil || !s.arePagesPostponed || !now.Before(s.expiresAt) {
		return nil, err
	}
	return g.postponedError(s, s.expiresAt, s.postponedReason), nil
}

// Peek returns the error that Check would return for u. If that is nil, Check would clear u if
// hasRules is true, otherwise the robots.txt of its origin. Unlike Check, Peek takes no fetch lease,
// so that no other caller has to wait, and it does not end the time for which new rules stay in force
// until they have cleared a page.
func (g *Gate) Peek(ctx context.Context, now time.Time, u decorum.URL) (hasRules bool, err error) {
	o := u.Origin()
	if o.IsZero() {
		return false, newGateError(u, decorum.Invalid, errors.New("the URL is empty"))
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

// CheckKnown returns the error of Check for u if it follows from the last known robots.txt: pages wait
// for the robots.txt, or its rules disallow u, even if these are too old. Unlike Check it takes no
// fetch lease and ignores fetches in progress.
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

// LastFetchSummary returns the result of the last fetch of the origin's robots.txt, whatever its age.
// Its Outcome is OutcomeUnknown if there was no fetch.
func (g *Gate) LastFetchSummary(ctx context.Context, o decorum.Origin) (FetchSummary, error) {
	if s := g.cache.stateIfCached(o); s != nil {
		return s.fetchSummary, nil
	}
	r, err := g.records.loadRecord(ctx, o)
	return g.compileState(&r, new(robots.File)).fetchSummary, err // the summary does not depend on the rules
}

// ExpiresAt returns until when the Gate's knowledge of the origin's robots.txt is valid. After that
// time, the next Check for the origin fetches it again. The time is zero for an unknown origin.
func (g *Gate) ExpiresAt(ctx context.Context, o decorum.Origin) (time.Time, error) {
	s, err := g.lastKnownState(ctx, o)
	return s.expiresAt, err
}
