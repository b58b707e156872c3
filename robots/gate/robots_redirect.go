package gate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
)

// CheckRobotsRedirect clears the visit to u, to which the lookup of origin's robots.txt
// was redirected. The rules of u's own origin are not looked up for it. If they
// are known and disallow u, that ends the lookup as if there were no file
// (FETCH-05): the error is of Kind Dropped, with a *RedirectDisallowedError. If the Gate does
// not wait for that hop any more, it is of Kind Dropped as well, without one.
func (g *Gate) CheckRobotsRedirect(ctx context.Context, now time.Time, u decorum.URL, origin decorum.Origin) (Clearance, error) {
	if u.IsZero() || origin.IsZero() {
		return Clearance{}, newGateError(u, decorum.Invalid, errors.New("no URL or no origin"))
	}
	disallowed, err := g.knownRefusal(ctx, now, u) // before origin is locked: two origins may redirect to each other
	if err != nil {
		return Clearance{}, err
	}
	e := g.cache.getOrCreateLocked(origin, now)
	defer e.mu.Unlock()
	s, err := g.currentState(ctx, now, origin, e)
	if err != nil {
		return Clearance{}, err
	}
	if s.pendingRedirect == nil || s.pendingRedirect.parsedTarget != u || e.inFlightFetch.isActive(now) && e.inFlightFetch.redirectCount != s.pendingRedirect.Count {
		return Clearance{}, newGateError(u, decorum.Dropped, errUnexpectedRedirect)
	}
	c := g.reserveRobotsFetch(now, e, origin, u, s.pendingRedirect.Count)
	if disallowed == nil {
		return c, nil
	}
	notFound := &decorum.Response{URL: u, Status: http.StatusNotFound}
	result, err := g.applyResponse(ctx, now, c, e, g.classifyResponse(now, c, notFound, nil))
	if err != nil {
		return Clearance{}, err
	}
	return Clearance{}, newGateError(u, decorum.Dropped, &RedirectDisallowedError{FetchResult: result, Refusal: disallowed})
}

var (
	errUnexpectedRedirect = errors.New("nobody waits for this redirect of a robots.txt")
	errNotRobotsClearance = errors.New("the clearance is not this gate's, or not for a robots.txt")
)

// knownRefusal returns why the known rules of u's origin disallow it, nil if they
// do not or are not known.
func (g *Gate) knownRefusal(ctx context.Context, now time.Time, u decorum.URL) (*Refusal, error) {
	o := u.Origin()
	e := g.cache.getOrCreateLocked(o, now)
	defer e.mu.Unlock()
	s, err := g.currentState(ctx, now, o, e)
	if err != nil || !s.hasRulesInForce(now) {
		return nil, err
	}
	if v := s.rules.Check(u); !v.Allowed {
		return &Refusal{Verdict: v, FetchSummary: s.fetchSummary}, nil
	}
	return nil, nil
}
