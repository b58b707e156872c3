package gate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestGateVerdictFunc proves that VerdictFunc gives the verdicts by which Check decides.
func TestGateVerdictFunc(t *testing.T) {
	const file = "User-agent: *\nDisallow: /no\nContent-Signal: ai-train=no\nContent-Usage: /free train-ai=y\n"
	s := newGateTest(t, Config{Purposes: []string{"ai-train"}})
	page := robotstest.URL(t, "https://example.com/no/page")
	if judge, err := s.gate.VerdictFunc(t.Context(), page.Origin()); judge != nil || err != nil {
		t.Fatalf("a function without rules, %v", err)
	}
	s.fetchRobots(page, respondWith(200, file))
	s.restart() // another run reads the stored rules
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
		if err := s.gate.CheckKnown(t.Context(), s.now, u); fmt.Sprint(err) != fmt.Sprint(checkErr) ||
			errors.Is(err, decorum.Disallowed) == want.Allowed {
			t.Errorf("%s: CheckKnown says %v, and Check %v", path, err, checkErr)
		}
	}
}
