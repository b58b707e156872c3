package gate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
)

// CheckRobotsRedirect returns a Clearance for u, the target of a redirect of origin's robots.txt. It
// does not have the rules of u's own origin fetched. If these are known and disallow u, the fetch ends
// as if there were no file (FETCH-05), and the error is of kind Dropped with a
// *RedirectDisallowedError. If the Gate no longer waits for this redirect, the error is of kind
// Dropped without one.
func (g *Gate) CheckRobotsRedirect(ctx context.Context, now time.Time, u decorum.URL,
	origin decorum.Origin) (Clearance, error) {
	if u.IsZero() || origin.IsZero() {
		return Clearance{}, newGateError(u, decorum.Invalid, errors.New("the URL or the origin is empty"))
	}
	// Check the rules of u's origin before locking the entry of origin: two origins may redirect to
	// each other, and no goroutine may hold the locks of both.
	disallowed, err := g.knownRefusal(ctx, now, u)
	if err != nil {
		return Clearance{}, err
	}
	e := g.cache.getOrCreateLocked(origin, now)
	defer e.mu.Unlock()
	s, err := g.currentState(ctx, now, origin, e)
	if err != nil {
		return Clearance{}, err
	}
	// Another visit may have ended the fetch, or may be in progress for another redirect.
	if s.pendingRedirect == nil || s.pendingRedirect.parsedTarget != u ||
		e.inFlightFetch.isActive(now) && e.inFlightFetch.redirectCount != s.pendingRedirect.Count {
		return Clearance{}, newGateError(u, decorum.Dropped, errUnexpectedRedirect)
	}
	c := g.reserveRobotsFetch(now, e, origin, u, s.pendingRedirect.Count)
	if disallowed == nil {
		return c, nil
	}
	// The redirect is disallowed: record the robots.txt as missing.
	notFound := &decorum.Response{URL: u, Status: http.StatusNotFound}
	result, err := g.applyResponse(ctx, now, c, e, g.classifyResponse(now, c, notFound, nil))
	if err != nil {
		return Clearance{}, err
	}
	return Clearance{}, newGateError(u, decorum.Dropped,
		&RedirectDisallowedError{FetchResult: result, Refusal: disallowed})
}

var (
	errUnexpectedRedirect = errors.New("no robots.txt fetch waits for this redirect")
	errNotRobotsClearance = errors.New("the clearance is from another gate, or not for a robots.txt")
)

// knownRefusal returns why the rules of u's origin disallow u, nil if they allow it or are not in
// force.
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
