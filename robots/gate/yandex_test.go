package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

const cleanRules = "User-agent: *\nDisallow: /a\nClean-param: sid\n"

// TestYandexFailureHolds proves that "no restriction" is checked again soon after a failure, and as late
// as a file after other answers.
func TestYandexFailureHolds(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(decorum.URL) *decorum.Response
		holds  time.Duration
	}{
		{"FETCH-21", respondWith(http.StatusNotFound), day},
		{"FETCH-22/503", respondWith(http.StatusServiceUnavailable), time.Hour},
		{"FETCH-22/429 that asks for more", respondWith(http.StatusTooManyRequests, "Retry-After", "7200"),
			2 * time.Hour},
		{"FETCH-22/500 that asks for a week", respondWith(http.StatusInternalServerError, "Retry-After", "604800"),
			day},
		{"FETCH-24", failDownload, time.Hour},
		{"FETCH-25", respondWith(http.StatusFound, "Location", "/r.txt"), day},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, Config{Dialect: robots.Yandex})
			page := robotstest.URL(t, "https://example.com/a")
			if l := s.fetchRobots(page, test.answer); !l.HasRulesInForce || l.Outcome != OutcomeAllowAll {
				t.Fatalf("outcome = %v, open = %v", l.Outcome, l.HasRulesInForce)
			}
			s.now = s.now.Add(test.holds - time.Second)
			if c, err := s.check(page); err != nil || c.IsForRobots() {
				t.Errorf("a second before %v: %v, %v", test.holds, c.URL(), err)
			}
			s.now = s.now.Add(time.Second)
			s.wantRobotsFetch(page)
		})
	}
}

// TestYandexUnsent proves that a request that was never sent does not lift restrictions.
func TestYandexUnsent(t *testing.T) {
	for _, err := range []error{
		decorum.Forbidden, decorum.Unticketed, decorum.Invalid,
		fmt.Errorf("get: %w", context.Canceled), fmt.Errorf("dial: %w", decorum.Forbidden),
	} {
		s := newGateTest(t, Config{Dialect: robots.Yandex})
		page := robotstest.URL(t, "https://example.com/a")
		l, learnErr := s.gate.RecordFetch(t.Context(), s.now, s.wantRobotsFetch(page), nil, err)
		if learnErr != nil || l.HasRulesInForce || l.Outcome != OutcomeDisallowAll {
			t.Errorf("after %v: outcome = %v, open = %v (%v)", err, l.Outcome, l.HasRulesInForce, learnErr)
		}
		if _, err := s.check(page); !errors.Is(err, decorum.Unreachable) {
			t.Errorf("Check = %v, want Unreachable", err)
		}
	}
}

func TestIsText(t *testing.T) {
	for _, test := range []struct {
		media, body string
		want        bool
	}{
		{"text/plain; charset=utf-8", "x", true},
		{"TEXT/PLAIN", "x", true},
		{" text/html", "x", true},
		{"", "x", true},
		{"plain", "x", true},
		{"application/json", "x", false},
		{"textual/plain", "x", false},
		{"", "x\x00", false},
	} {
		t.Run("FMT-13/"+test.media, func(t *testing.T) {
			res := &decorum.Response{Header: http.Header{"Content-Type": {test.media}}, Body: []byte(test.body)}
			if got := isTextResponse(res); got != test.want {
				t.Errorf("isText(%q, %q) = %v, want %v", test.media, test.body, got, test.want)
			}
		})
	}
}

// TestDialectsKeepApart proves that Gates of different dialects can share notes without sharing the
// meaning of an answer: the same answer restricts nothing for Yandex and postpones the origin for
// Google.
func TestDialectsKeepApart(t *testing.T) {
	s := newGateTest(t, Config{Dialect: robots.Yandex})
	page := robotstest.URL(t, "https://example.com/b")
	s.fetchRobots(page, respondWith(http.StatusServiceUnavailable))
	google := *s
	google.gate = New(Config{}, s.notes)
	if l := google.fetchRobots(page, respondWith(http.StatusServiceUnavailable)); l.HasRulesInForce {
		t.Error("the google dialect allows a page after a 503")
	}
	if _, err := s.check(page); err != nil {
		t.Errorf("the yandex dialect postpones the origin after a 503: %v", err)
	}
}

func TestSession(t *testing.T) {
	page := robotstest.URL(t, "https://example.com/b")
	for _, test := range []struct {
		name string
		cfg  Config
	}{
		{"CACHE-08/yandex", Config{Dialect: robots.Yandex, SessionStart: testStart.Add(-day)}},
		{"SESS-03/google, asked for", Config{SessionStart: testStart.Add(-day)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newGateTest(t, test.cfg)
			s.fetchRobots(page, respondWith(http.StatusOK, cleanRules))
			s.now = s.now.Add(time.Minute)
			s.restart()
			if c, err := s.check(page); err != nil || c.IsForRobots() { // SESS-05
				t.Errorf("in the same session: %v, %v", c.URL(), err)
			}
			s.newSession()
			s.now = s.now.Add(time.Second)
			s.fetchRobots(page, respondWith(http.StatusOK, "User-agent: *\nDisallow: /b\n"))
			if _, err := s.check(page); !errors.Is(err, decorum.Disallowed) {
				t.Errorf("in the new session: %v, want Disallowed", err)
			}
		})
	}
	t.Run("SESS-03/google", func(t *testing.T) {
		s := newGateTest(t, Config{})
		s.fetchRobots(page, respondWith(http.StatusOK, cleanRules))
		s.now = s.now.Add(time.Hour)
		s.restart()
		if c, err := s.check(page); err != nil || c.IsForRobots() {
			t.Errorf("%v, %v", c.URL(), err)
		}
	})
	t.Run("CACHE-08/no session", func(t *testing.T) {
		if err := (Config{Dialect: robots.Yandex}).Validate(); err == nil {
			t.Error("valid")
		}
	})
}

// TestSessionClockSetBack proves that an answer of this session counts even if the clock shows a time
// before the session began. Otherwise the robots.txt would be fetched again and again.
func TestSessionClockSetBack(t *testing.T) {
	s := newGateTest(t, Config{Dialect: robots.Yandex, SessionStart: testStart})
	page := robotstest.URL(t, "https://example.com/b")
	s.now = s.now.Add(-30 * time.Minute)
	if l := s.fetchRobots(page, respondWith(http.StatusOK, cleanRules)); !l.HasRulesInForce {
		t.Fatalf("postponed: %v", l.PostponedErr)
	}
	if c, err := s.check(page); err != nil || c.IsForRobots() {
		t.Errorf("fetched again: %v, %v", c.URL(), err)
	}
}

// TestGateClean proves which rules clean a URL: only cached ones, those of its own origin, and those of
// the last good copy while the server fails.
func TestGateClean(t *testing.T) {
	s := newGateTest(t, Config{})
	found, clean := robotstest.URL(t, "https://example.com/x?sid=1&b=2"), robotstest.URL(t, "https://example.com/x?b=2")
	want := func(when string, want decorum.URL) {
		t.Helper()
		if got := s.gate.CleanURL(found); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	want("unknown", found)
	s.fetchRobots(found, respondWith(http.StatusOK, cleanRules))
	want("known", clean)
	if other := robotstest.URL(t, "http://example.com/x?sid=1"); s.gate.CleanURL(other) != other {
		t.Error("the rules of another origin are applied")
	}
	s.restart()
	want("not in mind", found)
	if _, err := s.check(found); err != nil {
		t.Fatal(err)
	}
	want("in mind again", clean)
	s.now = s.now.Add(2 * day)
	s.fetchRobots(found, failDownload)
	want("in an outage", clean)
	if s.gate.CleanURL(decorum.URL{}) != (decorum.URL{}) {
		t.Error("the zero URL is cleaned to something")
	}
	off := newGateTest(t, Config{NoExtensions: true})
	off.fetchRobots(found, respondWith(http.StatusOK, cleanRules))
	if off.gate.CleanURL(found) != found {
		t.Error("CLEAN-25: the URL is cleaned although extensions are off")
	}
}
