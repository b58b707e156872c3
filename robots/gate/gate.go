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

// A Gate decides whether a URL may be visited now, by the robots.txt of its
// origin. It remembers answers, knows how long they hold, and asks for a
// robots.txt to be visited when it must know more. It makes no visit itself,
// takes the time as an argument, and keeps what it learns as notes, so that a
// restart fetches nothing again. All methods may be called at the same time.
type Gate struct {
	cfg         Config
	records     recordStore
	cache       originCache
	lastFetchID atomic.Uint64 // made so far
}

// New returns a Gate that keeps its records in notes. The config must be
// valid (Config.Validate).
func New(cfg Config, notes storage.Notes) *Gate {
	cfg = cfg.withDefaults()
	return &Gate{
		cfg: cfg,
		records: recordStore{
			notes: notes, dialect: cfg.Dialect, userAgent: cfg.UserAgent, maxVersions: cfg.MaxVersions, maxArchiveBytes: cfg.MaxArchiveBytes,
		},
		cache: originCache{maxOrigins: cfg.MaxCachedOrigins, entries: make(map[decorum.Origin]*originEntry)},
	}
}

// Dialect returns how the Gate reads files.
func (g *Gate) Dialect() robots.Dialect { return g.cfg.Dialect }

// Check clears the visit to u, or to the robots.txt of its origin if that must
// come first: the answer then goes to RecordFetch, or the Clearance to CancelFetch if the
// visit is not made. Otherwise the error is a *decorum.Error of Kind
//
//   - Disallowed, with a *Refusal: the rules say no;
//   - Pending, with an *OriginPostponedError: another caller is fetching the robots.txt;
//   - Unreachable, with an *OriginPostponedError: the fetch failed and its next is not due;
//   - Invalid: u is no URL.
//
// Any other error is one of storage.Notes. While rules hold, Check allocates
// nothing and does no I/O.
func (g *Gate) Check(ctx context.Context, now time.Time, u decorum.URL) (Clearance, error) {
	o := u.Origin()
	if o.IsZero() {
		return Clearance{}, newGateError(u, decorum.Invalid, errors.New("no URL"))
	}
	if s := g.cache.stateIfCached(o); s.hasRulesInForce(now) {
		return g.clearByRules(s, u)
	}
	e := g.cache.getOrCreateLocked(o, now)
	defer e.mu.Unlock()
	s, err := g.currentState(ctx, now, o, e)
	if err != nil {
		return Clearance{}, err
	}
	if s.hasRulesInForce(now) {
		return g.clearByRules(s, u)
	}
	if err := g.postponedPageError(now, u, s, &e.inFlightFetch); err != nil {
		return Clearance{}, err
	}
	return g.reserveRobotsFetch(now, e, o, o.RobotsURL(), 0), nil
}

// postponedPageError returns the error of Check for a URL whose origin has no rules in force; nil if
// its robots.txt is to be fetched now. inFlight is the lookup that may be under way.
func (g *Gate) postponedPageError(now time.Time, u decorum.URL, s *originState, inFlight *fetchLease) error {
	switch {
	case inFlight.isActive(now):
		return newGateError(u, decorum.Pending, g.postponedError(s, inFlight.expiresAt, "robots.txt is being fetched"))
	case !now.Before(s.expiresAt):
		return nil
	case s.pendingRedirect != nil: // it may be in the queue of a crawl that has another Gate
		until := timecmp.Earlier(now.Add(g.cfg.FetchLeaseTimeout), s.expiresAt)
		return newGateError(u, decorum.Pending, g.postponedError(s, until, s.postponedReason))
	}
	return newGateError(u, decorum.Unreachable, g.postponedError(s, s.expiresAt, s.postponedReason))
}

// clearByRules asks the rules.
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

// reserveRobotsFetch makes the Clearance for a visit of the origin's lookup. The lock of e
// is held.
func (g *Gate) reserveRobotsFetch(now time.Time, e *originEntry, o decorum.Origin, u decorum.URL, redirects int) Clearance {
	e.inFlightFetch = fetchLease{id: g.lastFetchID.Add(1), expiresAt: now.Add(g.cfg.FetchLeaseTimeout), redirectCount: redirects}
	return Clearance{gate: g, url: u, origin: o, verdict: robots.Verdict{Allowed: true}, fetchID: e.inFlightFetch.id, redirectCount: redirects}
}

// CancelFetch takes back a Clearance for a robots.txt that was not visited, or
// whose visit was broken off by the caller: the next who asks may make it. It
// does nothing to a Clearance of another kind.
func (g *Gate) CancelFetch(c Clearance) {
	if !c.IsForRobots() || c.gate != g {
		return
	}
	g.cache.releaseFetchLease(c)
}

// Rules returns the rules that the origin's pages were last judged by, nil if
// none are known.
func (g *Gate) Rules(ctx context.Context, o decorum.Origin) (*robots.Rules, error) {
	s, err := g.lastKnownState(ctx, o)
	return s.rules, err
}

// lastKnownState returns how an origin last stood, however long ago; without a record, how
// one stands of which nothing is known.
func (g *Gate) lastKnownState(ctx context.Context, o decorum.Origin) (*originState, error) {
	if s := g.cache.stateIfCached(o); s != nil {
		return s, nil
	}
	r, err := g.records.loadRecord(ctx, o)
	return g.compileState(&r, g.parseStoredFile(&r)), err
}

// Sitemaps returns the sitemaps that the origin's robots.txt names, as far as a
// file is known that counts.
func (g *Gate) Sitemaps(ctx context.Context, o decorum.Origin) ([]decorum.URL, error) {
	file, err := g.currentFile(ctx, o)
	return file.Sitemaps(), err
}

// MainMirror returns the main mirror that the origin's robots.txt names, as File.MainMirror
// does, as far as a file is known that counts; empty: it names none.
func (g *Gate) MainMirror(ctx context.Context, o decorum.Origin) (string, error) {
	file, err := g.currentFile(ctx, o)
	host, _ := file.MainMirror()
	return host, err
}

// currentFile returns the origin's robots.txt that counts; an empty one if none is known.
func (g *Gate) currentFile(ctx context.Context, o decorum.Origin) (*robots.File, error) {
	r, err := g.records.loadRecord(ctx, o)
	return g.parseStoredFile(&r), err
}

// CleanURL returns u without the parameters that its origin's robots.txt says to
// ignore, as far as the file is in mind: it does no I/O. After Check has judged
// a URL, it is.
func (g *Gate) CleanURL(u decorum.URL) decorum.URL {
	if strings.IndexByte(u.PathAndQuery(), '?') < 0 { // as most links: nobody need be asked
		return u
	}
	if s := g.cache.stateIfCached(u.Origin()); s != nil {
		return s.urlCleaner.CleanURL(u)
	}
	return u
}

// DelayAndNextAllowedTime returns what the origin's rules, as far as they are known, ask for at the
// moment now: the pause between two requests (Rules.DelayAt), and when the next
// may begin by the clock (Rules.NextAllowedTime). They hold on while the rules are too old
// or the origin is closed.
func (g *Gate) DelayAndNextAllowedTime(ctx context.Context, o decorum.Origin, now time.Time) (delay time.Duration, nextOpen time.Time, err error) {
	rules, err := g.Rules(ctx, o)
	if err != nil || rules == nil {
		return 0, now, err
	}
	return rules.DelayAt(now), rules.NextAllowedTime(now), nil
}

func (g *Gate) postponedError(s *originState, until time.Time, reason string) *OriginPostponedError {
	c := &OriginPostponedError{Until: until, Suspended: s.failures >= g.cfg.SuspendAfterFailures, ConsecutiveFailures: s.failures, Reason: reason}
	if s.pendingRedirect != nil {
		c.RedirectURL, c.RedirectPendingSince = s.pendingRedirect.parsedTarget, s.pendingRedirect.Since
	}
	return c
}

// disallowedError returns the error of Check for a URL that the rules of s disallow.
func disallowedError(u decorum.URL, v robots.Verdict, s *originState) error {
	return newGateError(u, decorum.Disallowed, &Refusal{Verdict: v, FetchSummary: s.fetchSummary})
}

func newGateError(u decorum.URL, kind decorum.ErrorKind, cause error) error {
	return &decorum.Error{Op: "robots", URL: u.String(), Kind: kind, Err: cause}
}
