package inspect

import (
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// TestRefusalsAreBounded: a tally counts URLs by reason, and counts the rules beyond the limit
// together.
func TestRefusalsAreBounded(t *testing.T) {
	u, err := decorum.ParseURL("http://a.example/x")
	if err != nil {
		t.Fatal(err)
	}
	rs := RefusalTally{}
	for line := range 3 * maxRulesPerHost {
		rs.AddURL(api.RefusalSummary{RefusedBy: parkedByRobots, Rule: "disallow: /x", RuleLine: line}, u)
	}
	rs.AddURL(api.RefusalSummary{RefusedBy: parkedByRobots, Rule: "disallow: /x", RuleLine: 1}, u)
	list := rs.Sorted()
	if len(list) != maxRulesPerHost+1 || list[0].URLCount != 2*maxRulesPerHost ||
		list[0].Rule != "other rules" || list[1].URLCount != 2 {
		t.Errorf("%d reasons, first %+v, %+v", len(list), list[0], list[1])
	}
}

// TestWhyParked: ParkedReason checks in the order of the crawl, and for the URL that the crawl would
// request.
func TestWhyParked(t *testing.T) {
	parse := func(s string) decorum.URL {
		u, err := decorum.ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	rules := robots.Parse([]byte("User-agent: *\nDisallow: /no\n"), robots.Google).RulesFor(robots.Agent{})
	scope := frontier.NewScope(frontier.ScopeConfig{}, []decorum.URL{parse("http://a.example/")})
	q := &Inspector{Scope: func() *frontier.Scope { return scope }}
	for _, tt := range []struct {
		entry    storage.Entry
		evaluate func(decorum.URL) robots.Verdict
		want     api.RefusalSummary
	}{
		{storage.Entry{URL: parse("http://b.example/no")}, rules.Check,
			api.RefusalSummary{RefusedBy: ParkedByScope, Rule: "another host than the seeds'"}},
		{storage.Entry{URL: parse("http://a.example/no")}, rules.Check,
			api.RefusalSummary{RefusedBy: parkedByRobots, RuleFileURL: "http://a.example/robots.txt",
				Rule: "disallow: /no", RuleLine: 2}},
		{storage.Entry{URL: parse("http://a.example/"), UncleanedURL: parse("http://a.example/no?sid"),
			UseUncleanedURL: true}, rules.Check,
			api.RefusalSummary{RefusedBy: parkedByRobots, RuleFileURL: "http://a.example/robots.txt",
				Rule: "disallow: /no", RuleLine: 2}},
		{storage.Entry{URL: parse("http://a.example/"), UncleanedURL: parse("http://a.example/no?sid")}, rules.Check,
			api.RefusalSummary{RefusedBy: parkedForNoReason, Rule: "allowed by now"}},
		{storage.Entry{URL: parse("http://a.example/no")}, nil,
			api.RefusalSummary{RefusedBy: parkedForNoReason, Rule: "its robots.txt is not known"}},
	} {
		if _, got := q.ParkedReason(tt.entry, tt.evaluate); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.entry.URL, got, tt.want)
		}
	}
}
