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

// An originState is what a record means to one Gate: the rules compiled for its
// agent, the body left behind. But for served it is immutable.
type originState struct {
	rules             *robots.Rules // that pages were last judged by; nil if none are known
	usageRules        *aiuse.Rules  // of the file of rules
	urlCleaner        *robots.URLCleaner
	fetchSummary      FetchSummary
	expiresAt         time.Time        // what is said below holds until then; after it, ask again
	arePagesPostponed bool             // pages wait
	pendingRedirect   *pendingRedirect // that the lookup waits for
	failures          int
	postponedReason   string // pages wait, if they do

	// unusedRulesValidUntil is until when rules that were just learnt decide at least until a
	// page has been cleared by them, however short they hold: where a host must
	// rest for longer than that, it would be asked for nothing but robots.txt.
	unusedRulesValidUntil time.Time
	hasClearedPage        atomic.Bool // a page has been cleared
}

// maxGrace is no longer than rules hold for whom nothing else is said.
const maxGrace = day

// hasRulesInForce reports whether the rules decide now. Under a nil state they do not.
func (s *originState) hasRulesInForce(now time.Time) bool {
	return s != nil && !s.arePagesPostponed && (now.Before(s.expiresAt) || now.Before(s.unusedRulesValidUntil) && !s.hasClearedPage.Load())
}

// currentState returns the origin's state, and reads the note if memory has none,
// or it is too old or waits for a hop: another Gate may have learnt more. The
// lock of e is held.
func (g *Gate) currentState(ctx context.Context, now time.Time, o decorum.Origin, e *originEntry) (*originState, error) {
	s := e.state.Load()
	if s != nil && (e.inFlightFetch.isActive(now) || s.pendingRedirect == nil && now.Before(s.expiresAt) || s.hasRulesInForce(now)) {
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

// maxClockSkew is how far ahead of the clock a record may be. Beyond it, the clock
// has been set back, and the record's times would hold for far too long.
const maxClockSkew = time.Hour

// compileState works out what a record means. file is the one that it keeps.
func (g *Gate) compileState(r *originRecord, file *robots.File) *originState {
	s := &originState{failures: r.ConsecutiveFailures, pendingRedirect: r.PendingRedirect, arePagesPostponed: r.LastResponse == nil, postponedReason: "robots.txt is not known"}
	if a := r.LastResponse; a != nil {
		s.fetchSummary = FetchSummary{SHA256: a.SHA256, FetchedAt: a.FetchedAt, Outcome: OutcomeAllowAll}
		s.rules = robots.AllowAll()
		if a.IsRobotsFile {
			s.fetchSummary.Outcome = OutcomeRules
			s.rules, s.usageRules, s.urlCleaner = file.RulesFor(g.cfg.Agent), aiuse.Compile(file, g.cfg.Agent), file.URLCleaner()
		}
		// Another Gate may let rules live longer.
		s.expiresAt = timecmp.Earlier(a.ExpiresAt, a.FetchedAt.Add(g.cfg.MaxTTL))
		if a.FetchedAt.Before(g.cfg.SessionStart) {
			s.expiresAt = a.FetchedAt // CACHE-08
		}
	}
	switch {
	case r.PendingRedirect != nil:
		s.arePagesPostponed, s.expiresAt = true, r.PendingRedirect.Since.Add(g.cfg.RedirectWaitTimeout)
		s.fetchSummary.Outcome = OutcomeRedirected
		s.postponedReason = "robots.txt redirects to " + r.PendingRedirect.Target
	case r.Outage != nil:
		s.applyOutage(r.Outage)
	}
	return s
}

// applyOutage applies an outage: pages wait (FETCH-09), until it has lasted so long
// that the last good copy counts again, or nothing does (FETCH-13, FETCH-14).
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

// parseStoredFile reads the file that a record keeps; an empty one if it keeps none.
func (g *Gate) parseStoredFile(r *originRecord) *robots.File {
	if r.LastResponse == nil || !r.LastResponse.IsRobotsFile {
		return new(robots.File)
	}
	return robots.ParseOptions{Dialect: g.cfg.Dialect, NoExtensions: g.cfg.NoExtensions, MaxBytes: robots.MaxFileBytes}.Parse(r.LastResponse.body)
}
