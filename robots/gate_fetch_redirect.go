package robots

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
)

// CheckHop clears the visit to u, to which the lookup of origin's robots.txt
// was redirected. The rules of u's own origin are not looked up for it. If they
// are known and disallow u, that ends the lookup as if there were no file
// (FETCH-05): the error is of Kind Dropped, with a *ChainEnd. If the Gate does
// not wait for that hop any more, it is of Kind Dropped as well, without one.
func (g *Gate) CheckHop(ctx context.Context, now time.Time, u decorum.URL, origin decorum.Origin) (Clearance, error) {
	if u.IsZero() || origin.IsZero() {
		return Clearance{}, refusal(u, decorum.Invalid, errors.New("no URL or no origin"))
	}
	no, err := g.disallows(ctx, now, u) // before origin is locked: two origins may redirect to each other
	if err != nil {
		return Clearance{}, err
	}
	e := g.memory.lock(origin, now)
	defer e.mu.Unlock()
	s, err := g.current(ctx, now, origin, e)
	if err != nil {
		return Clearance{}, err
	}
	if s.hop == nil || s.hop.url != u || e.inFlight.runs(now) && e.inFlight.hop != s.hop.Count {
		return Clearance{}, refusal(u, decorum.Dropped, errUnexpected)
	}
	c := g.clearRobotsFetch(now, e, origin, u, s.hop.Count)
	if no == nil {
		return c, nil
	}
	gone := &decorum.Response{URL: u, Status: http.StatusNotFound}
	lesson, err := g.learn(ctx, now, c, e, g.read(now, c, gone, nil))
	if err != nil {
		return Clearance{}, err
	}
	return Clearance{}, refusal(u, decorum.Dropped, &ChainEnd{Lesson: lesson, Refusal: no})
}

var (
	errUnexpected = errors.New("nobody waits for this redirect of a robots.txt")
	errNotRobots  = errors.New("the clearance is not this gate's, or not for a robots.txt")
)

// disallows returns why the known rules of u's origin disallow it, nil if they
// do not or are not known.
func (g *Gate) disallows(ctx context.Context, now time.Time, u decorum.URL) (*Refusal, error) {
	o := u.Origin()
	e := g.memory.lock(o, now)
	defer e.mu.Unlock()
	s, err := g.current(ctx, now, o, e)
	if err != nil || !s.open(now) {
		return nil, err
	}
	if v := s.rules.Check(u); !v.Allowed {
		return &Refusal{Verdict: v, File: s.file}, nil
	}
	return nil, nil
}

// Learn takes what came back for a robots.txt or a hop that the Gate cleared:
// a response, or why there is none. What comes after the claim of c ran out and
// was given away changes nothing: the Lesson then says how things stand. An
// error is one of the Notes, or of Kind Invalid for a Clearance that is not for
// a robots.txt.
func (g *Gate) Learn(ctx context.Context, now time.Time, c Clearance, res *decorum.Response, fetchErr error) (Lesson, error) {
	if c.gate != g || !c.ForRobots() {
		return Lesson{}, refusal(c.url, decorum.Invalid, errNotRobots)
	}
	now = now.Round(0).UTC() // the wall clock: others do not stand still while we sleep
	if now.Before(g.cfg.Session) {
		now = g.cfg.Session.Round(0).UTC() // it was set back: what is learnt now is of this session all the same
	}
	e := g.memory.lock(c.origin, now)
	defer e.mu.Unlock()
	if e.inFlight.id != c.fetchID {
		s, err := g.current(ctx, now, c.origin, e)
		if err != nil {
			return Lesson{}, err
		}
		return g.lesson(now, c.origin, e, s), nil
	}
	return g.learn(ctx, now, c, e, g.read(now, c, res, fetchErr))
}

// learn enters a reading into the record and ends the claim. The lock of e is
// held.
func (g *Gate) learn(ctx context.Context, now time.Time, c Clearance, e *entry, got classifiedResponse) (Lesson, error) {
	r, err := g.load(ctx, c.origin)
	if err != nil {
		return Lesson{}, err
	}
	recheck := r.Last.compare(&got)
	switch {
	case got.answer != nil:
		if c.hop > 0 {
			got.answer.At = c.url.String()
		}
		if err := g.retire(ctx, c.origin, r.Last, got.answer); err != nil {
			return Lesson{}, err
		}
		r.settle(now, got.answer)
	case got.failed != nil:
		r.fail(now, got.failed.why, got.failed.wait(r.Attempts+1), g.cfg.Outage)
	default:
		r.follow(now, got.to, c.hop+1)
	}
	if err := g.save(ctx, c.origin, &r); err != nil {
		return Lesson{}, err
	}
	s := g.compile(&r, g.parse(&r))
	s.grace = now.Add(maxGrace)
	e.state.Store(s)
	e.inFlight = fetchInFlight{}
	lesson := g.lesson(now, c.origin, e, s)
	lesson.Hop, lesson.Recheck = got.to, recheck
	return lesson, nil
}

// compare says what came of looking up again what a, which may be nil, has told.
func (a *answer) compare(got *classifiedResponse) Recheck {
	switch {
	case a == nil || got.answer == nil && got.failed == nil:
		return NoRecheck
	case got.failed != nil:
		return FailedRecheck
	case a.IsFile == got.answer.IsFile && a.SHA256 == got.answer.SHA256:
		return SameFile
	}
	return ChangedFile
}

// lesson says how things stand.
func (g *Gate) lesson(now time.Time, o decorum.Origin, e *entry, s *originState) Lesson {
	l := Lesson{Origin: o, Outcome: s.file.Outcome, Open: s.open(now)}
	if l.Open {
		return l
	}
	until, why := s.until, s.why
	if e.inFlight.runs(now) {
		until, why = e.inFlight.until, "robots.txt is being fetched"
	}
	l.Postponed = g.postponedError(s, until, why)
	return l
}
