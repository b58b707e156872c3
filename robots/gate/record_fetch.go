package gate

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
)

// RecordFetch takes what came back for a robots.txt or a hop that the Gate cleared:
// a response, or why there is none. What comes after the fetch lease of c expired and
// another Clearance got it changes nothing: the RecordFetchResult then says how things stand. An
// error is one of storage.Notes, or of Kind Invalid for a Clearance that is not for
// a robots.txt.
func (g *Gate) RecordFetch(ctx context.Context, now time.Time, c Clearance, res *decorum.Response, fetchErr error) (RecordFetchResult, error) {
	if c.gate != g || !c.IsForRobots() {
		return RecordFetchResult{}, newGateError(c.url, decorum.Invalid, errNotRobotsClearance)
	}
	now = now.Round(0).UTC() // the wall clock: others do not stand still while we sleep
	if now.Before(g.cfg.SessionStart) {
		now = g.cfg.SessionStart.Round(0).UTC() // it was set back: what is learnt now is of this session all the same
	}
	e := g.cache.getOrCreateLocked(c.origin, now)
	defer e.mu.Unlock()
	if e.inFlightFetch.id != c.fetchID {
		s, err := g.currentState(ctx, now, c.origin, e)
		if err != nil {
			return RecordFetchResult{}, err
		}
		return g.fetchResult(now, c.origin, e, s), nil
	}
	return g.applyResponse(ctx, now, c, e, g.classifyResponse(now, c, res, fetchErr))
}

// applyResponse enters a response into the record and ends the fetch lease. The caller
// holds e.mu.
func (g *Gate) applyResponse(ctx context.Context, now time.Time, c Clearance, e *originEntry, classified classifiedResponse) (RecordFetchResult, error) {
	r, err := g.records.loadRecord(ctx, c.origin)
	if err != nil {
		return RecordFetchResult{}, err
	}
	recheck := r.LastResponse.recheckResult(&classified)
	switch {
	case classified.finalResponse != nil:
		if c.redirectCount > 0 {
			classified.finalResponse.RedirectedTo = c.url.String()
		}
		if err := g.records.archiveVersionIfReplaced(ctx, c.origin, r.LastResponse, classified.finalResponse); err != nil {
			return RecordFetchResult{}, err
		}
		r.recordResponse(now, classified.finalResponse)
	case classified.failure != nil:
		r.recordFailure(now, classified.failure.reason, classified.failure.retryDelay(r.ConsecutiveFailures+1), g.cfg.MinOutageForCachedRules)
	default:
		r.recordRedirect(now, classified.redirectURL, c.redirectCount+1)
	}
	if err := g.records.saveRecord(ctx, c.origin, &r); err != nil {
		return RecordFetchResult{}, err
	}
	s := g.compileState(&r, g.parseStoredFile(&r))
	s.unusedRulesValidUntil = now.Add(maxGrace)
	e.state.Store(s)
	e.inFlightFetch = fetchLease{}
	result := g.fetchResult(now, c.origin, e, s)
	result.RedirectURL, result.RecheckResult = classified.redirectURL, recheck
	return result, nil
}

// recheckResult says how a response compares with a, which may be nil.
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

// fetchResult says how things stand.
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
