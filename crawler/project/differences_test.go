package project

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDifferences: each field with another value is named, with both values unless they may be secret.
func TestDifferences(t *testing.T) {
	parse := func(text string) Project {
		t.Helper()
		d, err := ParseFile("p.yaml", []byte(minimalFile+text))
		if err != nil {
			t.Fatal(err)
		}
		return d.Project
	}
	long := strings.Repeat("a", 1000)
	old := parse("politeness: {delay: 2s, window: {hours: 22:00-06:00}}\nlimits: {pages: 3}\nscope: {exclude: [/a]}\n" +
		"fetch: {headers: {X-Key: geheim}, proxy: 'http://me:geheim@p.example:1'}\nproject: " + long + "b\n")
	now := parse("politeness: {delay: 1500ms, window: {zone: UTC}}\nlimits: {pages: 3}\nscope: {exclude: [/a, /b]}\n" +
		"fetch: {headers: {X-Key: anders}, proxy: 'http://me:geheim@q.example:1'}\nproject: " + long + "c\n")
	want := []string{
		"project has changed", "scope.exclude was /a, is /a /b",
		"politeness.delay was 2s, is 1.5s", "politeness.window.hours was 22:00-06:00, is empty",
		"politeness.window.zone was empty, is UTC", "fetch.headers has changed",
		"fetch.proxy was http://*********@p.example:1, is http://*********@q.example:1",
	}
	if diff := cmp.Diff(want, old.Differences(now)); diff != "" {
		t.Error(diff)
	}
	if got := old.Differences(old); got != nil {
		t.Errorf("a project differs from itself: %q", got)
	}
}
