package robots

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An originState is what a record means to one Gate: the rules compiled for its
// agent, the body left behind. But for served it is immutable.
type originState struct {
	rules       *Rules // that pages were last judged by; nil if none are known
	cleaner     *Cleaner
	file        Snapshot
	until       time.Time // what is said below holds until then; after it, ask again
	isPostponed bool      // pages wait
	hop         *hop      // that the lookup waits for
	attempts    int
	why         string // pages wait, if they do

	// grace is until when rules that were just learnt decide at least until a
	// page has been cleared by them, however short they hold: where a host must
	// rest for longer than that, it would be asked for nothing but robots.txt.
	grace  time.Time
	served atomic.Bool // a page has been cleared
}

// maxGrace is no longer than rules hold for whom nothing else is said.
const maxGrace = day

// open reports whether the rules decide now. A nil standing is not open.
func (s *originState) open(now time.Time) bool {
	return s != nil && !s.isPostponed && (now.Before(s.until) || now.Before(s.grace) && !s.served.Load())
}

// current returns the origin's standing, and reads the note if memory has none,
// or it is too old or waits for a hop: another Gate may have learnt more. The
// lock of e is held.
func (g *Gate) current(ctx context.Context, now time.Time, o decorum.Origin, e *entry) (*originState, error) {
	s := e.state.Load()
	if s != nil && (e.inFlight.runs(now) || s.hop == nil && now.Before(s.until) || s.open(now)) {
		return s, nil
	}
	r, err := g.load(ctx, o)
	if err != nil {
		return nil, err
	}
	s = g.compile(&r, g.parse(&r))
	if r.Asked.Sub(now) > setBack {
		s.until = now
	}
	e.state.Store(s)
	return s, nil
}

// setBack is how far ahead of the clock a record may be. Beyond it, the clock
// has been set back, and the record's times would hold for far too long.
const setBack = time.Hour

// compile works out what a record means. file is the one that it keeps.
func (g *Gate) compile(r *originRecord, file *File) *originState {
	s := &originState{attempts: r.Attempts, hop: r.Hop, isPostponed: r.Last == nil, why: "robots.txt is not known"}
	if a := r.Last; a != nil {
		s.file = Snapshot{SHA256: a.SHA256, Fetched: a.Fetched, Outcome: AllowedAll}
		s.rules = AllowAll()
		if a.IsFile {
			s.file.Outcome = RulesKnown
			s.rules, s.cleaner = file.For(g.cfg.Agent), file.Cleaner()
		}
		s.until = a.Expires
		if latest := a.Fetched.Add(g.cfg.MaxTTL); latest.Before(s.until) {
			s.until = latest // another Gate may let rules live longer
		}
		if a.Fetched.Before(g.cfg.Session) {
			s.until = a.Fetched // CACHE-08
		}
	}
	switch {
	case r.Hop != nil:
		s.isPostponed, s.until = true, r.Hop.Since.Add(g.cfg.Hop)
		s.file.Outcome = Following
		s.why = "robots.txt redirects to " + r.Hop.Target
	case r.Outage != nil:
		s.suffer(r.Outage)
	}
	return s
}

// suffer applies an outage: pages wait (FETCH-09), until it has lasted so long
// that the last good copy counts again, or nothing does (FETCH-13, FETCH-14).
func (s *originState) suffer(o *outage) {
	s.isPostponed, s.until, s.why = !o.Over, o.Retry, o.Why
	switch {
	case !o.Over:
		s.file.Outcome = DisallowedAll
	case s.rules == nil:
		s.rules = AllowAll()
		s.file.Outcome = AllowedAll
	case s.file.Outcome == RulesKnown:
		s.file.Outcome = CachedRules
	}
}

// parse reads the file that a record keeps, nil if none.
func (g *Gate) parse(r *originRecord) *File {
	if r.Last == nil || !r.Last.IsFile {
		return nil
	}
	return Options{Dialect: g.cfg.Dialect, NoExtensions: g.cfg.NoExtensions, Limit: Limit}.Parse(r.Last.body)
}
