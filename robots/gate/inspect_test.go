package gate

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestGateVerdictFunc: what is told of URLs is what Check decides on.
func TestGateVerdictFunc(t *testing.T) {
	const file = "User-agent: *\nDisallow: /no\nContent-Signal: ai-train=no\nContent-Usage: /free train-ai=y\n"
	s := newGateTest(t, Config{Purposes: []string{"ai-train"}})
	page := robotstest.URL(t, "https://example.com/no/page")
	if judge, err := s.gate.VerdictFunc(t.Context(), page.Origin()); judge != nil || err != nil {
		t.Fatalf("a judge without rules, %v", err)
	}
	s.fetchRobots(page, respondWith(200, file))
	s.restart() // another run reads what is kept
	judge, err := s.gate.VerdictFunc(t.Context(), page.Origin())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]robots.Verdict{
		"/no/page":    {Rule: "disallow: /no", Line: 2, Group: "*"},
		"/yes":        {Rule: "content-signal: ai-train=n", Line: 3, Group: "*"},
		"/robots.txt": {Allowed: true, Group: "*"},
	} {
		u := robotstest.URL(t, "https://example.com"+path)
		if got := judge(u); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
		_, checkErr := s.gate.Check(t.Context(), s.now, u)
		if (checkErr == nil) != want.Allowed {
			t.Errorf("%s: Check says %v", path, checkErr)
		}
		if err := s.gate.CheckKnownRules(t.Context(), u); fmt.Sprint(err) != fmt.Sprint(checkErr) || errors.Is(err, decorum.Disallowed) == want.Allowed {
			t.Errorf("%s: CheckKnownRules says %v, and Check %v", path, err, checkErr)
		}
	}
}

// TestPostponedReason: it says what Check says, and leaves the lookup to others.
func TestPostponedReason(t *testing.T) {
	s := newGateTest(t, Config{})
	page := robotstest.URL(t, "https://example.com/")
	closed := func(want string) {
		t.Helper()
		c, err := s.gate.PostponedReason(t.Context(), s.now, page.Origin())
		got := ""
		if c != nil {
			got = c.Reason
		}
		if err != nil || got != want {
			t.Errorf("closed: %q, %v; want %q", got, err, want)
		}
		checkErr := s.gate.CheckPostponed(t.Context(), s.now, page)
		if errors.Is(checkErr, decorum.Unreachable) != (want != "") {
			t.Errorf("CheckPostponed says %v; want %q", checkErr, want)
		}
		if want == "" {
			return
		}
		if _, err := s.gate.Check(t.Context(), s.now, page); fmt.Sprint(err) != fmt.Sprint(checkErr) {
			t.Errorf("CheckPostponed says %v, and Check %v", checkErr, err)
		}
	}
	closed("")
	s.fetchRobots(page, respondWith(500, ""))
	closed("robots.txt: status 500")
	s.wantCheck(page, unreachable)
	s.now = s.now.Add(5 * time.Minute)
	closed("")
	s.fetchRobots(page, respondWith(200, "")) // nobody has claimed it
	closed("")
}
