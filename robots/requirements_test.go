package robots

import (
	"maps"
	"slices"
	"testing"
)

// TestRequirements fails if a requirement that has examples is not exercised,
// or an example is of none: every line of the files is run in at least one
// dialect, classic apart, and checks something.
func TestRequirements(t *testing.T) {
	exercised := make(map[string]bool)
	for _, text := range readLines(t, "testdata/robots-examples.jsonl") {
		var e example
		decodeExample(t, text, &e)
		if e.Allowed == nil && e.CrawlDelay == nil && e.Sitemaps == nil && e.Host == nil && e.CleanURL == nil {
			t.Errorf("checks nothing: %s", text)
		}
		exercised[e.Req] = exercised[e.Req] || len(dialects(t, e.Dialect)) > 0
	}
	for _, text := range readLines(t, "testdata/fetch-examples.jsonl") {
		var x lookupExample
		decodeExample(t, text, &x)
		if x.Want == "" {
			t.Errorf("checks nothing: %s", text)
		}
		exercised[x.Req] = exercised[x.Req] || len(dialects(t, x.Dialect)) > 0
	}
	for _, text := range readLines(t, "testdata/scope-examples.jsonl") {
		var e scopeExample
		decodeExample(t, text, &e)
		exercised[e.Req] = true
	}
	want := readLines(t, "testdata/requirements.txt")
	for _, req := range want {
		if !exercised[req] {
			t.Errorf("%s has no example that is run", req)
		}
	}
	for _, req := range slices.Sorted(maps.Keys(exercised)) {
		if !slices.Contains(want, req) {
			t.Errorf("%s has examples and is not in testdata/requirements.txt", req)
		}
	}
}
