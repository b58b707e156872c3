package gate

import (
	"errors"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestPurposes proves that a Gate disallows pages whose file forbids their use for the crawl's purposes.
func TestPurposes(t *testing.T) {
	page, open := robotstest.URL(t, "https://example.com/"), robotstest.URL(t, "https://example.com/open")
	for purpose, refused := range map[string]bool{"search": false, "ai-train": true} {
		s := newGateTest(t, Config{Purposes: []string{purpose}})
		s.fetchRobots(page, respondWith(200,
			"User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open train-ai=y\n"))
		_, err := s.check(page)
		var no *Refusal
		if refused != errors.Is(err, decorum.Disallowed) || refused &&
			(!errors.As(err, &no) || no.Verdict.Rule != "content-usage: train-ai=n" || no.Verdict.Line != 2) {
			t.Errorf("%s: %v", purpose, err)
		}
		if _, err := s.check(open); err != nil {
			t.Errorf("%s: %v", purpose, err)
		}
	}
	if (Config{Purposes: []string{"world-domination"}}).Validate() == nil {
		t.Error("an unknown purpose is accepted")
	}
	if (Config{Purposes: []string{"search"}, NoExtensions: true}).Validate() == nil {
		t.Error("a purpose is accepted that could not be enforced")
	}
}
