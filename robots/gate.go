package robots

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Gate decides whether a URL may be visited now, by the robots.txt of its
// origin. It remembers answers, knows how long they hold, and asks for a
// robots.txt to be visited when it must know more. It makes no visit itself,
// is told the time, and keeps what it learns in Notes, so that a restart asks
// nobody again. All methods may be called at the same time.
type Gate struct {
	cfg    GateConfig
	notes  Notes
	memory memory
	claims atomic.Uint64 // made so far
}

// NewGate returns a Gate that keeps its records in notes. The config must be
// valid (GateConfig.Validate).
func NewGate(cfg GateConfig, notes Notes) *Gate {
	cfg = cfg.withDefaults()
	return &Gate{
		cfg: cfg, notes: notes,
		memory: memory{limit: cfg.Origins, entries: make(map[decorum.Origin]*entry)},
	}
}

// Dialect returns how the Gate reads files.
func (g *Gate) Dialect() Dialect { return g.cfg.Dialect }

// Check clears the visit to u, or to the robots.txt of its origin if that must
// come first: the answer then goes to Learn, or the Clearance to Forget if the
// visit is not made. Otherwise the error is a *decorum.Error of Kind
//
//   - Disallowed, with a *Refusal: the rules say no;
//   - Pending, with a *Closed: somebody else is looking up the rules;
//   - Unreachable, with a *Closed: the lookup failed, its time has not come;
//   - Invalid: u is no URL.
//
// Any other error is one of the Notes. While rules hold, Check allocates
// nothing and does no I/O.
func (g *Gate) Check(ctx context.Context, now time.Time, u decorum.URL) (Clearance, error) {
	o := u.Origin()
	if o.IsZero() {
		return Clearance{}, refusal(u, decorum.Invalid, errors.New("no URL"))
	}
	if s := g.memory.find(o); s.open(now) {
		return g.clearByRules(s, u)
	}
	e := g.memory.lock(o, now)
	defer e.mu.Unlock()
	s, err := g.current(ctx, now, o, e)
	switch {
	case err != nil:
		return Clearance{}, err
	case s.open(now):
		return g.clearByRules(s, u)
	case e.inFlight.runs(now):
		return Clearance{}, refusal(u, decorum.Pending, g.postponedError(s, e.inFlight.until, "robots.txt is being fetched"))
	case now.Before(s.until) && s.hop != nil:
		return Clearance{}, refusal(u, decorum.Pending, g.postponedError(s, g.soon(now, s.until), s.why))
	case now.Before(s.until):
		return Clearance{}, refusal(u, decorum.Unreachable, g.postponedError(s, s.until, s.why))
	}
	return g.clearRobotsFetch(now, e, o, o.RobotsURL(), 0), nil
}

// clearByRules asks the rules.
func (g *Gate) clearByRules(s *originState, u decorum.URL) (Clearance, error) {
	v := g.verdict(s.rules, u)
	if !v.Allowed {
		return Clearance{}, refusal(u, decorum.Disallowed, &Refusal{Verdict: v, File: s.file})
	}
	if !s.served.Load() {
		s.served.Store(true)
	}
	return Clearance{gate: g, url: u, origin: u.Origin(), verdict: v, by: s}, nil
}

// clearRobotsFetch makes the Clearance for a visit of the origin's lookup. The lock of e
// is held.
func (g *Gate) clearRobotsFetch(now time.Time, e *entry, o decorum.Origin, u decorum.URL, hop int) Clearance {
	e.inFlight = fetchInFlight{id: g.claims.Add(1), until: now.Add(g.cfg.FetchTimeout), hop: hop}
	return Clearance{gate: g, url: u, origin: o, verdict: Verdict{Allowed: true}, fetchID: e.inFlight.id, hop: hop}
}

// Forget takes back a Clearance for a robots.txt that was not visited, or
// whose visit was broken off by the caller: the next who asks may make it. It
// does nothing to a Clearance of another kind.
func (g *Gate) Forget(c Clearance) {
	if !c.ForRobots() || c.gate != g {
		return
	}
	g.memory.release(c)
}

// Rules returns the rules that the origin's pages were last judged by, nil if
// none are known.
func (g *Gate) Rules(ctx context.Context, o decorum.Origin) (*Rules, error) {
	s, err := g.lately(ctx, o)
	if err != nil {
		return nil, err
	}
	return s.rules, nil
}

// Explain says how the rules that Rules returns judge u, with the hash of
// their file. Nothing is allowed while none are known. Whether an outage closes
// the origin is for Check to say.
func (g *Gate) Explain(ctx context.Context, u decorum.URL) (Explanation, error) {
	s, err := g.lately(ctx, u.Origin())
	if err != nil {
		return Explanation{}, err
	}
	if s.rules == nil {
		return DisallowAll().Explain(u), nil
	}
	e := s.rules.Explain(u)
	e.SHA256 = s.file.SHA256
	return e, nil
}

// lately returns how an origin last stood, however long ago.
func (g *Gate) lately(ctx context.Context, o decorum.Origin) (*originState, error) {
	if s := g.memory.find(o); s != nil {
		return s, nil
	}
	r, err := g.load(ctx, o)
	if err != nil {
		return nil, err
	}
	return g.compile(&r, g.parse(&r)), nil
}

// Sitemaps returns the sitemaps that the origin's robots.txt names, as far as a
// file is known that counts.
func (g *Gate) Sitemaps(ctx context.Context, o decorum.Origin) ([]decorum.URL, error) {
	file, err := g.counts(ctx, o)
	if file == nil {
		return nil, err
	}
	return file.Sitemaps(), nil
}

// Host returns the main mirror that the origin's robots.txt names, as File.Host
// does, as far as a file is known that counts; empty: it names none.
func (g *Gate) Host(ctx context.Context, o decorum.Origin) (string, error) {
	file, err := g.counts(ctx, o)
	if file == nil {
		return "", err
	}
	host, _ := file.Host()
	return host, nil
}

// counts returns the origin's robots.txt that counts; nil: none is known.
func (g *Gate) counts(ctx context.Context, o decorum.Origin) (*File, error) {
	r, err := g.load(ctx, o)
	if err != nil {
		return nil, err
	}
	return g.parse(&r), nil
}

// Clean returns u without the parameters that its origin's robots.txt says to
// ignore, as far as the file is in mind: it does no I/O. After Check has judged
// a URL, it is.
func (g *Gate) Clean(u decorum.URL) decorum.URL {
	if strings.IndexByte(u.Path(), '?') < 0 { // as most links: nobody need be asked
		return u
	}
	if s := g.memory.find(u.Origin()); s != nil {
		return s.cleaner.Clean(u)
	}
	return u
}

// Pace returns what the origin's rules, as far as they are known, ask for at the
// moment now: the pause between two requests (Rules.Pause), and when the next
// may begin by the clock (Rules.Opens). They hold on while the rules are too old
// or the origin is closed.
func (g *Gate) Pace(ctx context.Context, o decorum.Origin, now time.Time) (pause time.Duration, opens time.Time, err error) {
	rules, err := g.Rules(ctx, o)
	if err != nil || rules == nil {
		return 0, now, err
	}
	return rules.Pause(now), rules.Opens(now), nil
}

// soon is when to ask again whether a hop has been visited: it may be in the
// queue of a crawl that has another Gate.
func (g *Gate) soon(now, until time.Time) time.Time {
	if next := now.Add(g.cfg.FetchTimeout); next.Before(until) {
		return next
	}
	return until
}

func (g *Gate) postponedError(s *originState, until time.Time, why string) *PostponedError {
	c := &PostponedError{Until: until, Dormant: s.attempts >= g.cfg.Patience, Attempts: s.attempts, Why: why}
	if s.hop != nil {
		c.Hop, c.Since = s.hop.url, s.hop.Since
	}
	return c
}

func refusal(u decorum.URL, kind decorum.Kind, cause error) error {
	return &decorum.Error{Op: "robots", URL: u.String(), Kind: kind, Err: cause}
}
