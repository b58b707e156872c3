package gate

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// A Gate decides whether the robots.txt of an origin permits a visit to a URL now. It stores the
// answers and how long they are valid, and issues Clearances for the robots.txt when it needs a new
// answer. The caller makes the requests and passes the time. All methods are safe for concurrent use.
type Gate struct {
	cfg         Config
	records     recordStore
	cache       originCache
	lastFetchID atomic.Uint64 // the last Clearance.fetchID issued; they count from 1
}

// New returns a Gate that stores its records in notes. Config.Validate must have accepted cfg.
func New(cfg Config, notes storage.Notes) *Gate {
	cfg = cfg.withDefaults()
	return &Gate{
		cfg: cfg,
		records: recordStore{
			notes: notes, dialect: cfg.Dialect, userAgent: cfg.UserAgent, maxVersions: cfg.MaxVersions,
			maxArchiveBytes: cfg.MaxArchiveBytes,
		},
		cache: originCache{maxOrigins: cfg.MaxCachedOrigins, entries: make(map[decorum.Origin]*originEntry)},
	}
}

// Dialect returns the dialect in which the Gate parses files.
func (g *Gate) Dialect() robots.Dialect { return g.cfg.Dialect }

// Agent returns the crawler whose rules count.
func (g *Gate) Agent() robots.Agent { return g.cfg.Agent }

// Check returns a Clearance for u. If the robots.txt of its origin must be fetched first, the
// Clearance is for the robots.txt: the caller passes the answer to RecordFetch, or the Clearance to
// CancelFetch if it does not make the visit. Otherwise the error is a *decorum.Error of kind
//
//   - Disallowed, with a *Refusal: the rules disallow u;
//   - Pending, with an *OriginPostponedError: another caller is fetching the robots.txt;
//   - Unreachable, with an *OriginPostponedError: the fetch failed and the next attempt is not due;
//   - Invalid: u is the zero URL.
//
// All other errors come from storage.Notes. While the rules in force are cached (see
// Config.MaxCachedOrigins), Check does no I/O, and does not allocate unless it returns an error.
func (g *Gate) Check(ctx context.Context, now time.Time, u decorum.URL) (Clearance, error) {
	o := u.Origin()
	if o.IsZero() {
		return Clearance{}, newGateError(u, decorum.Invalid, errors.New("the URL is empty"))
	}
	if s := g.cache.stateIfCached(o); s.hasRulesInForce(now) {
		return g.clearByRules(s, u)
	}
	// Rules are not cached or too old: another Gate may have stored newer ones.
	e := g.cache.getOrCreateLocked(o, now)
	defer e.mu.Unlock()
	s, err := g.currentState(ctx, now, o, e)
	if err != nil {
		return Clearance{}, err
	}
	if s.hasRulesInForce(now) {
		return g.clearByRules(s, u)
	}
	// Without rules in force, pages wait, or this caller fetches the robots.txt.
	if err := g.postponedPageError(now, u, s, &e.inFlightFetch); err != nil {
		return Clearance{}, err
	}
	return g.reserveRobotsFetch(now, e, o, o.RobotsURL(), 0), nil
}

// postponedPageError returns the error of Check for a URL whose origin has no rules in force, or nil
// if its robots.txt should be fetched now. inFlight is the fetch of the robots.txt that may be in
// progress.
func (g *Gate) postponedPageError(now time.Time, u decorum.URL, s *originState, inFlight *fetchLease) error {
	switch {
	case inFlight.isActive(now):
		return newGateError(u, decorum.Pending, g.postponedError(s, inFlight.expiresAt, "robots.txt is being fetched"))
	case !now.Before(s.expiresAt):
		return nil
	case s.pendingRedirect != nil: // its target may be in the queue of a crawl with another Gate
		until := timecmp.Earlier(now.Add(g.cfg.FetchLeaseTimeout), s.expiresAt)
		return newGateError(u, decorum.Pending, g.postponedError(s, until, s.postponedReason))
	}
	return newGateError(u, decorum.Unreachable, g.postponedError(s, s.expiresAt, s.postponedReason))
}

// clearByRules returns a Clearance for u if the rules of s allow it, otherwise the error of Check.
func (g *Gate) clearByRules(s *originState, u decorum.URL) (Clearance, error) {
	v := g.verdict(s, u)
	if !v.Allowed {
		return Clearance{}, disallowedError(u, v, s)
	}
	if !s.hasClearedPage.Load() {
		s.hasClearedPage.Store(true)
	}
	return Clearance{gate: g, url: u, origin: u.Origin(), verdict: v, originState: s}, nil
}

// reserveRobotsFetch takes the fetch lease of e and returns the Clearance for a visit to u, which is
// the robots.txt of o or the target of its redirects. The caller holds e.mu.
func (g *Gate) reserveRobotsFetch(now time.Time, e *originEntry, o decorum.Origin,
	u decorum.URL, redirects int) Clearance {
	e.inFlightFetch = fetchLease{id: g.lastFetchID.Add(1),
		expiresAt: now.Add(g.cfg.FetchLeaseTimeout), redirectCount: redirects}
	return Clearance{gate: g, url: u, origin: o, verdict: robots.Verdict{Allowed: true},
		fetchID: e.inFlightFetch.id, redirectCount: redirects}
}

// CancelFetch returns a Clearance for a robots.txt whose visit the caller did not make or aborted, so
// that another caller of Check can fetch the robots.txt. It ignores other Clearances.
func (g *Gate) CancelFetch(c Clearance) {
	if !c.IsForRobots() || c.gate != g {
		return
	}
	g.cache.releaseFetchLease(c)
}

// Rules returns the last known rules of the origin, even if they are no longer in force, or nil if
// none are known.
func (g *Gate) Rules(ctx context.Context, o decorum.Origin) (*robots.Rules, error) {
	s, err := g.lastKnownState(ctx, o)
	return s.rules, err
}

// lastKnownState returns the last known state of an origin, whatever its age. For an origin without a
// record, it returns the state of an unknown origin.
func (g *Gate) lastKnownState(ctx context.Context, o decorum.Origin) (*originState, error) {
	if s := g.cache.stateIfCached(o); s != nil {
		return s, nil
	}
	r, err := g.records.loadRecord(ctx, o)
	return g.compileState(&r, g.parseStoredFile(&r)), err
}

// Sitemaps returns the sitemaps that the stored robots.txt of the origin names, nil if none is stored.
func (g *Gate) Sitemaps(ctx context.Context, o decorum.Origin) ([]decorum.URL, error) {
	file, err := g.currentFile(ctx, o)
	return file.Sitemaps(), err
}

// MainMirror returns the main mirror that the stored robots.txt of the origin names, in the form of
// File.MainMirror, and "" if no file is stored or it names none.
func (g *Gate) MainMirror(ctx context.Context, o decorum.Origin) (string, error) {
	file, err := g.currentFile(ctx, o)
	host, _ := file.MainMirror()
	return host, err
}

// currentFile returns the stored robots.txt of the origin, an empty file if none is stored.
func (g *Gate) currentFile(ctx context.Context, o decorum.Origin) (*robots.File, error) {
	r, err := g.records.loadRecord(ctx, o)
	return g.parseStoredFile(&r), err
}

// CleanURL returns u without the parameters that the robots.txt of its origin names in Clean-param
// lines. It uses only cached rules and does no I/O; the rules are cached once Check has succeeded for
// the origin. Without cached rules it returns u.
func (g *Gate) CleanURL(u decorum.URL) decorum.URL {
	if strings.IndexByte(u.PathAndQuery(), '?') < 0 { // most links have no query
		return u
	}
	if s := g.cache.stateIfCached(u.Origin()); s != nil {
		return s.urlCleaner.CleanURL(u)
	}
	return u
}

// DelayAndNextAllowedTime returns what the last known rules of the origin demand at the time now: the
// delay between two requests (Rules.DelayAt), and the earliest time at which the visit hours permit
// the next one (Rules.NextAllowedTime). It uses the rules even if they are too old or the origin is
// postponed. Without known rules it returns 0 and now.
func (g *Gate) DelayAndNextAllowedTime(ctx context.Context, o decorum.Origin,
	now time.Time) (delay time.Duration, nextOpen time.Time, err error) {
	rules, err := g.Rules(ctx, o)
	if err != nil || rules == nil {
		return 0, now, err
	}
	return rules.DelayAt(now), rules.NextAllowedTime(now), nil
}

// postponedError returns the error for pages of an origin in state s that wait until the given time.
func (g *Gate) postponedError(s *originState, until time.Time, reason string) *OriginPostponedError {
	c := &OriginPostponedError{Until: until, Suspended: s.failures >= g.cfg.SuspendAfterFailures,
		ConsecutiveFailures: s.failures, Reason: reason}
	if s.pendingRedirect != nil {
		c.RedirectURL, c.RedirectPendingSince = s.pendingRedirect.parsedTarget, s.pendingRedirect.Since
	}
	return c
}

// disallowedError returns the error of Check for a URL that the rules of s disallow with verdict v.
func disallowedError(u decorum.URL, v robots.Verdict, s *originState) error {
	return newGateError(u, decorum.Disallowed, &Refusal{Verdict: v, FetchSummary: s.fetchSummary})
}

// newGateError returns the *decorum.Error of the package about u.
func newGateError(u decorum.URL, kind decorum.ErrorKind, cause error) error {
	return &decorum.Error{Op: "robots", URL: u.String(), Kind: kind, Err: cause}
}
