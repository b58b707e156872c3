package project

import (
	"testing"

	"github.com/decorum-crawler/decorum"
)

func TestUserAgent(t *testing.T) {
	p := Default()
	p.Agent.Contact = "https://example.com/bot"
	if got, want := p.UserAgent(), "decorum/"+decorum.Version()+" (+https://example.com/bot)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Agent.Product, p.Agent.Version = "examplebot", "1.0"
	if got, want := p.UserAgent(), "examplebot/1.0 (+https://example.com/bot)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestZeroIsNone: 0 in the project file means none, although the zero value of the other packages'
// configuration means the default.
func TestZeroIsNone(t *testing.T) {
	p := Default()
	p.Politeness.Delay, p.Politeness.AdaptiveFactor, p.Scope.MaxDepth = 0, 0, 0
	policy := p.PolitenessPolicy().WithDefaults()
	if policy.Delay > 0 || policy.AdaptiveFactor > 0 {
		t.Errorf("delay %v, adaptive %v; want none", policy.Delay, policy.AdaptiveFactor)
	}
	scope, err := p.ScopeConfig()
	if err != nil || scope.MaxDepth >= 0 {
		t.Errorf("depth %d, %v; want seeds only", scope.MaxDepth, err)
	}
}

func TestProxyAndWARC(t *testing.T) {
	p := Default()
	p.Output.WARCDir, p.Fetch.Proxy = "archive", "http://proxy.example:3128"
	if f := checkedBy(checkOutputSettings, &p); len(f) != 1 || f[0].FieldPath != "output.warc" {
		t.Errorf("%v, want a problem with output.warc", f)
	}
}

// checkedBy returns the problems that check finds in p.
func checkedBy(check func(*Project, *problemCollector), p *Project) []FieldProblem {
	found := &problemCollector{reported: map[string]bool{}}
	check(p, found)
	return found.problems
}
