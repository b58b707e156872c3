package gate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// checkRedirect expects a Clearance for the redirect in result.
func (s *gateTest) checkRedirect(result RecordFetchResult) Clearance {
	s.t.Helper()
	c, err := s.gate.CheckRobotsRedirect(s.t.Context(), s.now, result.RedirectURL, result.Origin)
	if err != nil || c.URL() != result.RedirectURL || c.RobotsOrigin() != result.Origin ||
		!c.IsForRobots() || !c.WasIssued() {
		s.t.Fatalf("CheckRobotsRedirect(%v) = %v for %v, %v", result.RedirectURL, c.URL(), c.RobotsOrigin(), err)
	}
	return c
}

// wantDroppedRedirect expects that CheckRobotsRedirect drops u because no fetch waits for it.
func (s *gateTest) wantDroppedRedirect(u decorum.URL, o decorum.Origin) {
	s.t.Helper()
	c, err := s.gate.CheckRobotsRedirect(s.t.Context(), s.now, u, o)
	var end *RedirectDisallowedError
	if !errors.Is(err, decorum.Dropped) || errors.As(err, &end) || c.WasIssued() {
		s.t.Errorf("CheckRobotsRedirect(%v) = %v, %v; want it dropped", u, c.URL(), err)
	}
}

func redirectTo(to string) func(decorum.URL) *decorum.Response {
	return respondWith(302, "Location", to)
}

// TestRedirectChain follows a chain of redirects across schemes and hosts, with a restart in between.
func TestRedirectChain(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "http://example.com/b")
	result := s.fetchRobots(page, redirectTo("https://example.com/robots.txt"))
	for i, to := range []string{"https://www.example.com/robots.txt", "//cdn.example.net/r.txt?v=1"} {
		if result.HasRulesInForce || result.Outcome != OutcomeRedirected || result.PostponedErr == nil ||
			result.RedirectURL.IsZero() {
			t.Fatalf("result = %+v, want a redirect", result)
		}
		if result.PostponedErr.ConsecutiveFailures != 0 {
			t.Errorf("postponed %+v: a redirect is not a failure", result.PostponedErr)
		}
		s.wantCheck(page, pending)
		s.restart()
		s.wantCheck(page, pending)
		c := s.checkRedirect(result)
		if c.redirectCount != i+1 {
			t.Errorf("redirect %d, want %d", c.redirectCount, i+1)
		}
		s.wantCheck(page, pending)
		result = s.recordFetch(c, redirectTo(to)(c.URL()))
	}
	last := s.checkRedirect(result)
	result = s.recordFetch(last, respondWith(200, someRules)(last.URL()))
	if !result.HasRulesInForce || result.Outcome != OutcomeRules || result.Origin != page.Origin() ||
		!result.RedirectURL.IsZero() {
		t.Errorf("result = %+v", result)
	}
	s.wantCheck(page, pageCleared) // FETCH-04: the rules apply to the origin of the first request,
	s.wantCheck(robotstest.URL(t, "http://example.com/a"), disallowed)
	s.wantCheck(robotstest.URL(t, "https://cdn.example.net/a"), robotsFirst) // not to the host that served them
	s.wantDroppedRedirect(last.URL(), page.Origin())
}

// TestRedirectChainEnds proves that a chain of redirects without a file at its end counts as a missing
// robots.txt.
func TestRedirectChainEnds(t *testing.T) {
	const robots = "https://example.com/robots.txt"
	for _, test := range []struct {
		name     string
		maxHops  int
		chain    []string // the redirect targets, in order
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
			s := newGateTest(t, Config{MaxRedirects: test.maxHops})
			page := robotstest.URL(t, "https://example.com/b")
			result := s.fetchRobots(page, redirectTo(test.chain[0]))
			requests := 1
			for ; !result.RedirectURL.IsZero() && requests < 50; requests++ {
				c := s.checkRedirect(result)
				result = s.recordFetch(c, redirectTo(test.chain[requests%len(test.chain)])(c.URL()))
			}
			if requests != test.requests || result.Outcome != OutcomeAllowAll || !result.HasRulesInForce {
				t.Errorf("%d requests, result %+v; want %d and no restriction", requests, result, test.requests)
			}
			s.wantCheck(page, pageCleared)
		})
	}
}

// TestRedirectFails proves FETCH-28: after a failure at the target, the fetch begins again at the
// robots.txt.
func TestRedirectFails(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	c := s.checkRedirect(s.fetchRobots(page, redirectTo("https://b.test/r.txt")))
	result := s.recordFetch(c, respondWith(503)(c.URL()))
	if result.HasRulesInForce || result.Outcome != OutcomeDisallowAll || result.PostponedErr.ConsecutiveFailures != 1 {
		t.Errorf("result = %+v", result)
	}
	s.wantCheck(page, unreachable)
	s.wantDroppedRedirect(c.URL(), page.Origin())
	s.now = s.now.Add(time.Minute)
	s.wantRobotsFetch(page)
}

// TestBlockedHop proves FETCH-05: a disallowed target of a redirect ends the fetch.
func TestBlockedHop(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	target := robotstest.URL(t, "https://b.test/private/r.txt")
	const private = "User-agent: *\nDisallow: /private\n"
	for _, test := range []struct {
		name    string
		before  func(*gateTest)
		blocked bool
	}{
		{"known rules", func(s *gateTest) { s.fetchRobots(target, respondWith(200, private)) }, true},
		{"known in the notes", func(s *gateTest) {
			s.fetchRobots(target, respondWith(200, private))
			s.restart()
		}, true},
		{"nothing is known", func(*gateTest) {}, false},
		{"rules too old", func(s *gateTest) {
			s.fetchRobots(target, respondWith(200, private))
			s.now = s.now.Add(day)
		}, false},
		{"target closed", func(s *gateTest) { s.fetchRobots(target, failDownload) }, false},
		{"rules for others", func(s *gateTest) {
			s.fetchRobots(target, respondWith(200, "User-agent: otherbot\nDisallow: /\n"))
		}, false},
	} {
		t.Run("FETCH-05/"+test.name, func(t *testing.T) {
			s := newGateTest(t, Config{})
			test.before(s)
			result := s.fetchRobots(page, redirectTo(target.String()))
			if !test.blocked {
				s.checkRedirect(result)
				return
			}
			_, err := s.gate.CheckRobotsRedirect(t.Context(), s.now, result.RedirectURL, result.Origin)
			var end *RedirectDisallowedError
			if !errors.Is(err, decorum.Dropped) || !errors.As(err, &end) {
				t.Fatalf("CheckRobotsRedirect: %v, want the chain to end", err)
			}
			if l := end.FetchResult; !l.HasRulesInForce || l.Outcome != OutcomeAllowAll || l.Origin != page.Origin() {
				t.Errorf("result = %+v", l)
			}
			if end.Refusal.Verdict.Rule != "disallow: /private" {
				t.Errorf("refusal = %+v", end.Refusal)
			}
			s.wantCheck(page, pageCleared)
			s.wantDroppedRedirect(target, page.Origin())
		})
	}
}

// TestRobotsRedirectIsNeverBlocked proves the last part of FETCH-05: a redirect to a robots.txt is never
// disallowed.
func TestRobotsRedirectIsNeverBlocked(t *testing.T) {
	s := newGateTest(t, Config{})
	target := robotstest.URL(t, "https://b.test/robots.txt")
	s.fetchRobots(target, respondWith(200, "User-agent: *\nDisallow: /\n"))
	s.checkRedirect(s.fetchRobots(robotstest.URL(t, "https://example.com/b"), redirectTo(target.String())))
}

// TestRedirectsBothWays proves that the robots.txt files of two origins that redirect to each other can
// be fetched at the same time.
func TestRedirectsBothWays(t *testing.T) {
	s := newGateTest(t, Config{})
	a, b := robotstest.URL(t, "https://a.test/"), robotstest.URL(t, "https://b.test/")
	la := s.fetchRobots(a, redirectTo("https://b.test/robots.txt"))
	lb := s.fetchRobots(b, redirectTo("https://a.test/robots.txt"))
	ca, cb := s.checkRedirect(la), s.checkRedirect(lb)
	s.recordFetch(ca, respondWith(200, "User-agent: *\nDisallow: /\n")(ca.URL()))
	s.recordFetch(cb, respondWith(404)(cb.URL()))
	s.wantCheck(a, disallowed)
	s.wantCheck(b, pageCleared)
}

func TestUnexpectedRedirects(t *testing.T) {
	s := newGateTest(t, Config{})
	page, target := robotstest.URL(t, "https://example.com/b"), robotstest.URL(t, "https://b.test/r.txt")
	s.wantDroppedRedirect(target, page.Origin()) // no fetch has begun
	s.fetchRobots(page, redirectTo(target.String()))
	s.wantDroppedRedirect(robotstest.URL(t, "https://b.test/other.txt"), page.Origin())
	s.wantDroppedRedirect(target, robotstest.URL(t, "https://c.test/").Origin())
	for _, bad := range []struct {
		u decorum.URL
		o decorum.Origin
	}{{decorum.URL{}, page.Origin()}, {target, decorum.Origin{}}} {
		if _, err := s.gate.CheckRobotsRedirect(t.Context(), s.now, bad.u, bad.o); !errors.Is(err, decorum.Invalid) {
			t.Errorf("CheckRobotsRedirect(%v, %v): %v", bad.u, bad.o, err)
		}
	}
}

// TestRedirectHandedOutTwice proves that a second worker is cleared for a redirect if the first one has
// disappeared, and that a late answer of the first has no effect.
func TestRedirectHandedOutTwice(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	result := s.fetchRobots(page, redirectTo("https://b.test/r.txt"))
	first, second := s.checkRedirect(result), s.checkRedirect(result)
	if l := s.recordFetch(first, respondWith(404)(first.URL())); l.HasRulesInForce ||
		l.Outcome != OutcomeRedirected || !l.RedirectURL.IsZero() {
		t.Errorf("result of the late answer: %+v", l)
	}
	s.wantCheck(page, pending)
	s.recordFetch(second, respondWith(200, someRules)(second.URL()))
	s.wantCheck(page, pageCleared)
	s.gate.CancelFetch(second) // its answer was recorded already
	s.wantCheck(page, pageCleared)
}

// TestCanceledRedirect proves that a redirect whose visit was aborted can be visited again.
func TestCanceledRedirect(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	result := s.fetchRobots(page, redirectTo("https://b.test/r.txt"))
	s.gate.CancelFetch(s.checkRedirect(result))
	s.wantCheck(page, pending)
	s.checkRedirect(result)
}

// TestLostRedirect proves that a redirect that is never visited does not postpone the origin forever,
// and that the origin is suspended if this happens repeatedly.
func TestLostRedirect(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/b")
	for stuck := range 4 {
		t.Run(fmt.Sprint(stuck), func(t *testing.T) {
			result := s.fetchRobots(page, redirectTo("https://b.test/r.txt"))
			if c := result.PostponedErr; c.ConsecutiveFailures != stuck || c.Suspended != (stuck >= 3) ||
				!c.Until.Equal(s.now.Add(15*time.Minute)) {
				t.Errorf("postponed %+v", c)
			}
			_, err := s.wantCheck(page, pending)
			var closed *OriginPostponedError
			if !errors.As(err, &closed) || !closed.Until.Equal(s.now.Add(2*time.Minute)) {
				t.Errorf("Check says %+v: another Gate may follow the redirect soon", closed)
			}
			s.now = s.now.Add(15*time.Minute - time.Nanosecond)
			s.wantCheck(page, pending)
			s.now = s.now.Add(time.Nanosecond)
		})
	}
	// The redirect may still be visited until the fetch begins again, but not after that.
	hop := robotstest.URL(t, "https://b.test/r.txt")
	s.gate.CancelFetch(s.checkRedirect(RecordFetchResult{Origin: page.Origin(), RedirectURL: hop}))
	s.wantRobotsFetch(page)
	s.wantDroppedRedirect(hop, page.Origin())
}
