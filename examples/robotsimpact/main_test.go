package main

import (
	"strings"
	"testing"
)

// TestCompare: a shortened rule closes another path, and a changed group opens one.
func TestCompare(t *testing.T) {
	const before = "User-agent: *\nDisallow: /tmp/\n\nUser-agent: Googlebot\nDisallow: /drafts/\n"
	const after = "User-agent: *\nDisallow: /t\n\nUser-agent: Googlebot\nAllow: /\n"
	urls := []string{"https://example.com/", "https://example.com/tickets", "https://example.com/drafts/1"}
	var out strings.Builder
	closed, err := compareRobots(&out, before, after, urls, []string{"Googlebot", "Bingbot"})
	if err != nil {
		t.Fatal(err)
	}
	want := "opened to Googlebot: https://example.com/drafts/1\n" +
		"closed to Bingbot: https://example.com/tickets, by line 2: disallow: /t\n"
	if out.String() != want || closed != 1 {
		t.Errorf("%d closed, wrote\n%swant\n%s", closed, &out, want)
	}
	if _, err := compareRobots(&out, before, after, []string{"http://%zz/"}, []string{"Bingbot"}); err == nil {
		t.Error("no error for an invalid URL")
	}
}
