package frontier_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// TestRefusalsAreSaved: refusals are counted by host and reason over all runs, and the number of
// counts is bounded.
func TestRefusalsAreSaved(t *testing.T) {
	store := memory.New(memory.Config{})
	cfg := frontier.Config{Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.DomainScope, MaxParams: 1},
		[]decorum.URL{mustURL(t, "http://a.test/")})}
	save := func(f *frontier.Frontier) {
		t.Helper()
		if err := f.SaveRefusalAndSessionIDCounts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		f := frontier.New(store, cfg)
		discoverURLs(t, f, storage.SourceLink, "http://a.test/?a&b", "http://www.a.test/?a&b", "http://a.test/?a&c",
			"http://b.test/", "http://c.test/")
		save(f)
		discoverURLs(t, f, storage.SourceLink, "http://a.test/?a&d")
		save(f)
		save(f) // adds nothing again
		if got := f.RefusalsByReason(); got[frontier.TooManyParams] != 4 || got[frontier.OutsideScope] != 2 {
			t.Errorf("this run refused %v", got)
		}
	}
	counts, err := frontier.LoadRefusalCounts(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	many, where := "more than 1 parameters", "another domain than the seeds'"
	if diff := cmp.Diff([]frontier.RefusalCount{
		{Host: "a.test", Reason: "params", Count: 6, Why: many, Example: "http://a.test/?a&b"},
		{Reason: "within", Count: 4, Why: where, Example: "http://b.test/"},
		{Host: "www.a.test", Reason: "params", Count: 2, Why: many, Example: "http://www.a.test/?a&b"},
	}, counts); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	f := frontier.New(store, cfg)
	discoverURLs(t, f, storage.SourceLink, numberedURLs(0, 3000, "http://h%d.a.test/?a&b")...)
	save(f)
	counts, err = frontier.LoadRefusalCounts(t.Context(), store)
	total := int64(0)
	for _, r := range counts {
		total += r.Count
	}
	if err != nil || len(counts) > 2010 || total != 3012 {
		t.Errorf("%d kinds of %d refusals are kept (%v), want 3012", len(counts), total, err)
	}
}

// TestSessionsAreCounted: a host that puts session IDs into the paths of the crawl's URLs is
// counted over all runs, and not as a refusal.
func TestSessionsAreCounted(t *testing.T) {
	store := memory.New(memory.Config{})
	params, err := frontier.NewParamCleaner(frontier.ParamRules{Drop: []string{"ref"}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := frontier.Config{ParamCleaner: params,
		Scope: frontier.NewScope(frontier.ScopeConfig{Mode: frontier.DomainScope},
			[]decorum.URL{mustURL(t, "http://a.test/")})}
	for run := range 2 {
		f := frontier.New(store, cfg)
		discoverURLs(t, f, storage.SourceLink, fmt.Sprintf("http://a.test/p;jsessionid=%d?ref=1", run),
			"http://a.test/q?x&PHPSESSID=abc", "http://www.a.test/PHPSESSID=1/",
			"http://a.test/p?ref=2", "http://a.test/p;jsessionid=", "http://elsewhere.test/p;jsessionid=1")
		if err := f.SaveRefusalAndSessionIDCounts(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.RefusalsByReason(); len(got) != 1 || got[frontier.OutsideScope] != 1 {
			t.Errorf("refused %v", got)
		}
	}
	counts, err := frontier.LoadStrippedSessionIDCounts(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	const why = "a session ID was removed"
	if diff := cmp.Diff([]frontier.RefusalCount{
		{Host: "a.test", Reason: "session_id", Count: 4, Why: why, Example: "http://a.test/p;jsessionid=0?ref=1"},
		{Host: "www.a.test", Reason: "session_id", Count: 2, Why: why, Example: "http://www.a.test/PHPSESSID=1/"},
	}, counts); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
