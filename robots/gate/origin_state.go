package gate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// An originState is an originRecord compiled for the agent of one Gate, without the body of the file.
// It is immutable except for hasClearedPage.
type originState struct {
	rules             *robots.Rules // the last known rules; nil if none are known
	usageRules        *aiuse.Rules  // from the same file as rules
	urlCleaner        *robots.URLCleaner
	fetchSummary      FetchSummary
	expiresAt         time.Time        // when the state expires, so that the next Check fetches the robots.txt again
	arePagesPostponed bool             // pages wait until expiresAt
	pendingRedirect   *pendingRedirect // the redirect whose target must be visited next; nil if none
	failures          int              // consecutive failed fetches
	postponedReason   string           // why pages wait, if arePagesPostponed

	// unusedRulesValidUntil is until when new rules stay in force although they have expired, unless
	// they have cleared a page. Without it, a host whose delay is longer than the validity of its
	// rules would only ever receive requests for its robots.txt.
	unusedRulesValidUntil time.Time
	hasClearedPage        atomic.Bool // the rules have cleared a page
}

// maxGrace is for how long unused rules stay in force. It is not longer than the default validity of
// rules (CACHE-01).
const maxGrace = day

// hasRulesInForce reports whether the rules of s decide at the time now. s may be nil, which means
// no.
func (s *originState) hasRulesInForce(now time.Time) bool {
	return s != nil && !s.arePagesPostponed &&
		(now.Before(s.expiresAt) || now.Before(s.unusedRulesValidUntil) && !s.hasClearedPage.Load())
}

// currentState returns the state of the origin. It reads the record again if the state is not cached,
// has expired or waits for the target of a redirect, because another Gate may have stored a newer
// one. The caller holds e.mu.
func (g *Gate) currentState(ctx context.Context, now time.Time, o decorum.Origin,
	e *originEntry) (*originState, error) {
	s := e.state.Load()
	if s != nil && (e.inFlightFetch.isActive(now) ||
		s.pendingRedirect == nil && now.Before(s.expiresAt) || s.hasRulesInForce(now)) {
		return s, nil
	}
	r, err := g.records.loadRecord(ctx, o)
	if err != nil {
		return nil, err
	}
	s = g.compileState(&r, g.parseStoredFile(&r))
	if r.LastAttempt.Sub(now) > maxClockSkew {
		s.expiresAt = now
	}
	e.state.Store(s)
	return s, nil
}

// maxClockSkew is how far ahead of the clock a record may be. If it is further ahead, the clock has
// been set back, and the record would be valid for far too long.
const maxClockSkew = time.Hour

// compileState compiles the record r for the agent of the Gate. file is the parsed file of r.
func (g *Gate) compileState(r *originRecord, file *robots.File) *originState {
	s := &originState{failures: r.ConsecutiveFailures, pendingRedirect: r.PendingRedirect,
		arePagesPostponed: r.LastResponse == nil, postponedReason: "robots.txt is not known"}
	// The last response gives the rules and their validity.
	if a := r.LastResponse; a != nil {
		s.fetchSummary = FetchSummary{SHA256: a.SHA256, FetchedAt: a.FetchedAt, Outcome: OutcomeAllowAll}
		s.rules = robots.AllowAll()
		if a.IsRobotsFile {
			s.fetchSummary.Outcome = OutcomeRules
			s.rules, s.usageRules, s.urlCleaner =
				file.RulesFor(g.cfg.Agent), aiuse.Compile(file, g.cfg.Agent), file.URLCleaner()
		}
		// The Gate that stored the record may have a longer MaxTTL.
		s.expiresAt = timecmp.Earlier(a.ExpiresAt, a.FetchedAt.Add(g.cfg.MaxTTL))
		if a.FetchedAt.Before(g.cfg.SessionStart) {
			s.expiresAt = a.FetchedAt // CACHE-08
		}
	}
	// A redirect in progress or an outage postpones pages.
	switch {
	case r.PendingRedirect != nil:
		s.arePagesPostponed, s.expiresAt = true, r.PendingRedirect.Since.Add(g.cfg.RedirectWaitTimeout)
		s.fetchSummary.Outcome = OutcomeRedirected
		s.postponedReason = "robots.txt redirects to " + r.PendingRedirect.Target
	case r.Outage != nil:
		s.applyOutage(r.Outage)
	}
	s.fetchSummary.Answered = r.LastResponse != nil && r.LastResponse.Status != 0 ||
		r.PendingRedirect != nil || r.Outage != nil && r.Outage.Answered
	return s
}

// applyOutage applies an outage to s: pages wait (FETCH-09). If the outage is past its limit, the last
// good copy decides again, or without one everything is allowed (FETCH-13, FETCH-14).
func (s *originState) applyOutage(o *outage) {
	s.arePagesPostponed, s.expiresAt, s.postponedReason = !o.PastLimit, o.RetryAt, o.Reason
	switch {
	case !o.PastLimit:
		s.fetchSummary.Outcome = OutcomeDisallowAll
	case s.rules == nil:
		s.rules = robots.AllowAll()
		s.fetchSummary.Outcome = OutcomeAllowAll
	case s.fetchSummary.Outcome == OutcomeRules:
		s.fetchSummary.Outcome = OutcomeCachedRules
	}
}

// parseStoredFile parses the file in a record. It returns an empty file if the record has none.
func (g *Gate) parseStoredFile(r *originRecord) *robots.File {
	if r.LastResponse == nil || !r.LastResponse.IsRobotsFile {
		return new(robots.File)
	}
	return g.parseFile(r.LastResponse.body)
}

// parseFile parses a robots.txt by the dialect of the Gate.
func (g *Gate) parseFile(body []byte) *robots.File {
	return robots.ParseOptions{Dialect: g.cfg.Dialect, NoExtensions: g.cfg.NoExtensions,
		MaxBytes: robots.MaxFileBytes}.Parse(body)
}
