package gate

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
)

// RecordFetch stores the result of a visit that c cleared, to a robots.txt or to the target of its
// redirect: the response, or the error of a fetch without one. If the fetch lease of c has expired and
// another Clearance has it, RecordFetch ignores the result and returns the current state of the
// origin. Its error comes from storage.Notes, or is of kind Invalid if c is not for a robots.txt.
func (g *Gate) RecordFetch(ctx context.Context, now time.Time, c Clearance, res *decorum.Response,
	fetchErr error) (RecordFetchResult, error) {
	if c.gate != g || !c.IsForRobots() {
		return RecordFetchResult{}, newGateError(c.url, decorum.Invalid, errNotRobotsClearance)
	}
	// Use wall clock time, because the monotonic clock stops while the machine sleeps.
	now = now.Round(0).UTC()
	if now.Before(g.cfg.SessionStart) {
		// The clock was set back; the answer still belongs to this session.
		now = g.cfg.SessionStart.Round(0).UTC()
	}
	e := g.cache.getOrCreateLocked(c.origin, now)
	defer e.mu.Unlock()
	// Ignore the result of a visit whose fetch lease another Clearance has taken over.
	if e.inFlightFetch.id != c.fetchID {
		s, err := g.currentState(ctx, now, c.origin, e)
		if err != nil {
			return RecordFetchResult{}, err
		}
		return g.fetchResult(now, c.origin, e, s), nil
	}
	return g.applyResponse(ctx, now, c, e, g.classifyResponse(now, c, res, fetchErr))
}

// applyResponse stores a response in the record and ends the fetch lease. The caller holds e.mu.
func (g *Gate) applyResponse(ctx context.Context, now time.Time, c Clearance, e *originEntry,
	classified classifiedResponse) (RecordFetchResult, error) {
	r, err := g.records.loadRecord(ctx, c.origin)
	if err != nil {
		return RecordFetchResult{}, err
	}
	recheck := r.LastResponse.recheckResult(&classified)
	// Update the record, and archive the file that a new one replaces.
	switch {
	case classified.finalResponse != nil:
		if c.redirectCount > 0 {
			classified.finalResponse.RedirectedTo = c.url.String()
		}
		if err := g.records.archiveVersionIfReplaced(
			ctx, c.origin, r.LastResponse, classified.finalResponse,
		); err != nil {
			return RecordFetchResult{}, err
		}
		r.recordResponse(now, classified.finalResponse)
	case classified.failure != nil:
		r.recordFailure(now, classified.failure, classified.failure.retryDelay(r.ConsecutiveFailures+1),
			g.cfg.MinOutageForCachedRules)
	default:
		r.recordRedirect(now, classified.redirectURL, c.redirectCount+1)
	}
	if err := g.records.saveRecord(ctx, c.origin, &r); err != nil {
		return RecordFetchResult{}, err
	}
	// Replace the cached state, which also ends the fetch lease.
	s := g.compileState(&r, g.parseStoredFile(&r))
	s.unusedRulesValidUntil = now.Add(maxGrace)
	e.state.Store(s)
	e.inFlightFetch = fetchLease{}
	result := g.fetchResult(now, c.origin, e, s)
	result.RedirectURL, result.RecheckResult = classified.redirectURL, recheck
	return result, nil
}

// recheckResult compares a response with the stored one, a, which may be nil.
func (a *storedResponse) recheckResult(classified *classifiedResponse) FileRecheckResult {
	switch {
	case a == nil || classified.finalResponse == nil && classified.failure == nil:
		return NoRecheck
	case classified.failure != nil:
		return FailedRecheck
	case a.IsRobotsFile == classified.finalResponse.IsRobotsFile && a.SHA256 == classified.finalResponse.SHA256:
		return SameFile
	}
	return ChangedFile
}

// fetchResult returns the state s of the origin as a RecordFetchResult, without RedirectURL and
// RecheckResult. The caller holds e.mu.
func (g *Gate) fetchResult(now time.Time, o decorum.Origin, e *originEntry, s *originState) RecordFetchResult {
	l := RecordFetchResult{Origin: o, Outcome: s.fetchSummary.Outcome, HasRulesInForce: s.hasRulesInForce(now)}
	if l.HasRulesInForce {
		return l
	}
	until, reason := s.expiresAt, s.postponedReason
	if e.inFlightFetch.isActive(now) {
		until, reason = e.inFlightFetch.expiresAt, "robots.txt is being fetched"
	}
	l.PostponedErr = g.postponedError(s, until, reason)
	return l
}
