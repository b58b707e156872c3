package robots

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

// hop expects that the redirect just learnt may be visited.
func (s *scene) hop(lesson Lesson) Clearance {
	s.t.Helper()
	c, err := s.gate.CheckHop(s.t.Context(), s.now, lesson.Hop, lesson.Origin)
	if err != nil || c.URL() != lesson.Hop || c.Origin() != lesson.Origin || !c.ForRobots() || !c.Valid() {
		s.t.Fatalf("CheckHop(%v) = %v for %v, %v", lesson.Hop, c.URL(), c.Origin(), err)
	}
	return c
}

// wantNoHop expects that u is dropped: nobody waits for it.
func (s *scene) wantNoHop(u decorum.URL, o decorum.Origin) {
	s.t.Helper()
	c, err := s.gate.CheckHop(s.t.Context(), s.now, u, o)
	var end *ChainEnd
	if !errors.Is(err, decorum.Dropped) || errors.As(err, &end) || c.Valid() {
		s.t.Errorf("CheckHop(%v) = %v, %v; want it dropped", u, c.URL(), err)
	}
}

func redirect(to string) func(decorum.URL) *decorum.Response {
	return answers(302, "Location", to)
}

// TestChain follows a chain over schemes and hosts, with a restart on the way.
func TestChain(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "http://example.com/b")
	lesson := s.lookup(page, redirect("https://example.com/robots.txt"))
	for i, to := range []string{"https://www.example.com/robots.txt", "//cdn.example.net/r.txt?v=1"} {
		if lesson.Open || lesson.Outcome != Following || lesson.Postponed == nil || lesson.Hop.IsZero() {
			t.Fatalf("lesson = %+v, want a hop", lesson)
		}
		if lesson.Postponed.Attempts != 0 {
			t.Errorf("closed %+v: a hop is no failure", lesson.Postponed)
		}
		s.want(page, pending)
		s.restart()
		s.want(page, pending)
		c := s.hop(lesson)
		if c.Hop() != i+1 {
			t.Errorf("hop %d, want %d", c.Hop(), i+1)
		}
		s.want(page, pending)
		lesson = s.learn(c, redirect(to)(c.URL()))
	}
	last := s.hop(lesson)
	lesson = s.learn(last, answers(200, someRules)(last.URL()))
	if !lesson.Open || lesson.Outcome != RulesKnown || lesson.Origin != page.Origin() || !lesson.Hop.IsZero() {
		t.Errorf("lesson = %+v", lesson)
	}
	s.want(page, open) // FETCH-04: the rules are those of the origin asked first,
	s.want(mustURL(t, "http://example.com/a"), disallowed)
	s.want(mustURL(t, "https://cdn.example.net/a"), asks) // not of the host that served them
	s.wantNoHop(last.URL(), page.Origin())
}

// TestChainEnds: chains that lead nowhere count as no robots.txt.
func TestChainEnds(t *testing.T) {
	const robots = "https://example.com/robots.txt"
	for _, test := range []struct {
		name     string
		maxHops  int
		chain    []string // each visit redirects there
		requests int
	}{
		{"FETCH-03/to itself", 0, []string{robots}, 6},
		{"FETCH-03/loop over hosts", 0, []string{"http://b.test/robots.txt", robots}, 6},
		{"FETCH-03/loop over schemes", 0, []string{"http://example.com/robots.txt", robots}, 6},
		{"FETCH-02/more hops", 8, []string{robots}, 9},
		{"FETCH-26/no Location", 0, []string{""}, 1},
		{"FETCH-26/unreadable", 0, []string{"http://[::1/robots.txt"}, 1},
		{"FETCH-26/bad port", 0, []string{"https://example.com:port/"}, 1},
		{"FETCH-26/other scheme", 0, []string{"https://b.test/r.txt", "javascript:alert(1)"}, 2},
		{"FETCH-26/gopher", 0, []string{"gopher://b.test/r.txt"}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene(t, GateConfig{MaxHops: test.maxHops})
			page := mustURL(t, "https://example.com/b")
			lesson := s.lookup(page, redirect(test.chain[0]))
			requests := 1
			for ; !lesson.Hop.IsZero() && requests < 50; requests++ {
				c := s.hop(lesson)
				lesson = s.learn(c, redirect(test.chain[requests%len(test.chain)])(c.URL()))
			}
			if requests != test.requests || lesson.Outcome != AllowedAll || !lesson.Open {
				t.Errorf("%d requests, lesson %+v; want %d and no restriction", requests, lesson, test.requests)
			}
			s.want(page, open)
		})
	}
}

// TestHopFails pins FETCH-28: the lookup begins again at the robots.txt.
func TestHopFails(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	c := s.hop(s.lookup(page, redirect("https://b.test/r.txt")))
	lesson := s.learn(c, answers(503)(c.URL()))
	if lesson.Open || lesson.Outcome != DisallowedAll || lesson.Postponed.Attempts != 1 {
		t.Errorf("lesson = %+v", lesson)
	}
	s.want(page, unreachable)
	s.wantNoHop(c.URL(), page.Origin())
	s.now = s.now.Add(time.Minute)
	s.wantRobotsFetch(page)
}

// TestBlockedHop pins FETCH-05.
func TestBlockedHop(t *testing.T) {
	page := mustURL(t, "https://example.com/b")
	target := mustURL(t, "https://b.test/private/r.txt")
	const private = "User-agent: *\nDisallow: /private\n"
	for _, test := range []struct {
		name    string
		before  func(*scene)
		blocked bool
	}{
		{"known rules", func(s *scene) { s.lookup(target, answers(200, private)) }, true},
		{"known in the notes", func(s *scene) { s.lookup(target, answers(200, private)); s.restart() }, true},
		{"nothing is known", func(*scene) {}, false},
		{"rules too old", func(s *scene) { s.lookup(target, answers(200, private)); s.now = s.now.Add(day) }, false},
		{"target closed", func(s *scene) { s.lookup(target, fails) }, false},
		{"rules for others", func(s *scene) { s.lookup(target, answers(200, "User-agent: otherbot\nDisallow: /\n")) }, false},
	} {
		t.Run("FETCH-05/"+test.name, func(t *testing.T) {
			s := newScene(t, GateConfig{})
			test.before(s)
			lesson := s.lookup(page, redirect(target.String()))
			if !test.blocked {
				s.hop(lesson)
				return
			}
			_, err := s.gate.CheckHop(t.Context(), s.now, lesson.Hop, lesson.Origin)
			var end *ChainEnd
			if !errors.Is(err, decorum.Dropped) || !errors.As(err, &end) {
				t.Fatalf("CheckHop: %v, want the chain to end", err)
			}
			if l := end.Lesson; !l.Open || l.Outcome != AllowedAll || l.Origin != page.Origin() {
				t.Errorf("lesson = %+v", l)
			}
			if end.Refusal.Verdict.Rule != "disallow: /private" {
				t.Errorf("refusal = %+v", end.Refusal)
			}
			s.want(page, open)
			s.wantNoHop(target, page.Origin())
		})
	}
}

// TestRobotsHopIsNeverBlocked pins the end of FETCH-05.
func TestRobotsHopIsNeverBlocked(t *testing.T) {
	s := newScene(t, GateConfig{})
	target := mustURL(t, "https://b.test/robots.txt")
	s.lookup(target, answers(200, "User-agent: *\nDisallow: /\n"))
	s.hop(s.lookup(mustURL(t, "https://example.com/b"), redirect(target.String())))
}

// TestHopsTwoWays: two origins whose robots.txt redirect to each other are
// looked up side by side.
func TestHopsTwoWays(t *testing.T) {
	s := newScene(t, GateConfig{})
	a, b := mustURL(t, "https://a.test/"), mustURL(t, "https://b.test/")
	la := s.lookup(a, redirect("https://b.test/robots.txt"))
	lb := s.lookup(b, redirect("https://a.test/robots.txt"))
	ca, cb := s.hop(la), s.hop(lb)
	s.learn(ca, answers(200, "User-agent: *\nDisallow: /\n")(ca.URL()))
	s.learn(cb, answers(404)(cb.URL()))
	s.want(a, disallowed)
	s.want(b, open)
}

func TestUnexpectedHops(t *testing.T) {
	s := newScene(t, GateConfig{})
	page, target := mustURL(t, "https://example.com/b"), mustURL(t, "https://b.test/r.txt")
	s.wantNoHop(target, page.Origin()) // nothing was asked
	s.lookup(page, redirect(target.String()))
	s.wantNoHop(mustURL(t, "https://b.test/other.txt"), page.Origin())
	s.wantNoHop(target, mustURL(t, "https://c.test/").Origin())
	for _, bad := range []struct {
		u decorum.URL
		o decorum.Origin
	}{{decorum.URL{}, page.Origin()}, {target, decorum.Origin{}}} {
		if _, err := s.gate.CheckHop(t.Context(), s.now, bad.u, bad.o); !errors.Is(err, decorum.Invalid) {
			t.Errorf("CheckHop(%v, %v): %v", bad.u, bad.o, err)
		}
	}
}

// TestHopHandedOutTwice: its first visitor died. The second is cleared, and
// what the first still brings changes nothing.
func TestHopHandedOutTwice(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	lesson := s.lookup(page, redirect("https://b.test/r.txt"))
	first, second := s.hop(lesson), s.hop(lesson)
	if l := s.learn(first, answers(404)(first.URL())); l.Open || l.Outcome != Following || !l.Hop.IsZero() {
		t.Errorf("lesson for the one who came late: %+v", l)
	}
	s.want(page, pending)
	s.learn(second, answers(200, someRules)(second.URL()))
	s.want(page, open)
	s.gate.Forget(second) // too late to be forgotten
	s.want(page, open)
}

// TestForgottenHop: a hop whose visit was broken off may be visited again.
func TestForgottenHop(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	lesson := s.lookup(page, redirect("https://b.test/r.txt"))
	s.gate.Forget(s.hop(lesson))
	s.want(page, pending)
	s.hop(lesson)
}

// TestLostHop: a hop that nobody visits does not close the origin for ever,
// and nobody need wait for it when that has happened often.
func TestLostHop(t *testing.T) {
	s := newScene(t, GateConfig{})
	page := mustURL(t, "https://example.com/b")
	for stuck := range 4 {
		t.Run(fmt.Sprint(stuck), func(t *testing.T) {
			lesson := s.lookup(page, redirect("https://b.test/r.txt"))
			if c := lesson.Postponed; c.Attempts != stuck || c.Dormant != (stuck >= 3) || !c.Until.Equal(s.now.Add(15*time.Minute)) {
				t.Errorf("closed %+v", c)
			}
			_, err := s.want(page, pending)
			var closed *PostponedError
			if !errors.As(err, &closed) || !closed.Until.Equal(s.now.Add(2*time.Minute)) {
				t.Errorf("Check says %+v: a hop of another Gate may be done soon", closed)
			}
			s.now = s.now.Add(15*time.Minute - time.Nanosecond)
			s.want(page, pending)
			s.now = s.now.Add(time.Nanosecond)
		})
	}
	// It is still welcome until the lookup begins again, but not beside it.
	hop := mustURL(t, "https://b.test/r.txt")
	s.gate.Forget(s.hop(Lesson{Origin: page.Origin(), Hop: hop}))
	s.wantRobotsFetch(page)
	s.wantNoHop(hop, page.Origin())
}
