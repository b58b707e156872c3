package robots

import (
	"fmt"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// A scopeExample is one line of testdata/scope-examples.jsonl.
type scopeExample struct {
	Req       string
	RobotsURL string `json:"robots_url"`
	URL       string
	Applies   bool
}

func TestScopeExamples(t *testing.T) {
	for i, text := range robotstest.Lines(t, "testdata/scope-examples.jsonl") {
		var e scopeExample
		robotstest.Decode(t, text, &e)
		t.Run(fmt.Sprintf("%s/%d", e.Req, i+1), func(t *testing.T) {
			if got := RobotsURLAppliesTo(e.RobotsURL, e.URL); got != e.Applies {
				t.Errorf("%s covers %s = %v, want %v", e.RobotsURL, e.URL, got, e.Applies)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		name, file, page string
		want             bool
	}{
		{"LOC-01/empty query", "https://example.com/robots.txt?", "https://example.com/", false},
		{"LOC-01/fragment", "https://example.com/robots.txt#top", "https://example.com/", true},
		{"LOC-02/other scheme", "gemini://example.org/ROBOTS.TXT", "gemini://example.org/", false},
		{"LOC-06/other scheme", "gemini://example.org/a/robots.txt", "gemini://example.org/a/", false},
		{"LOC-07/other scheme", "gemini://exämple.org/robots.txt", "GEMINI://user@xn--exmple-cua.org", true},
		{"LOC-11/other scheme", "gemini://example.org:1965/robots.txt", "gemini://example.org/", false},
		{"LOC-11/port 80 of another scheme", "gemini://example.org:80/robots.txt", "gemini://example.org/", false},
		{"LOC-09/IPv6", "gopher://[2001:DB8::1]:70/robots.txt", "gopher://[2001:db8:0::1]:70/x", true},
		{"LOC-14", "ftp://example.com:21/robots.txt", "FTP://anonymous@example.com/x", true},
		{"LOC-15/no host", "mailto:a@example.com", "mailto:a@example.com", false},
		{"LOC-15/no host, with path", "file:///robots.txt", "file:///x", false},
		{"LOC-17/no URL", "/robots.txt", "/x", false},
		{"LOC-17/broken", "https://exa mple.com/robots.txt", "https://exa mple.com/", false},
		{"LOC-17/broken host of another scheme", "gemini://a%00b/robots.txt", "gemini://a%00b/", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := RobotsURLAppliesTo(test.file, test.page); got != test.want {
				t.Errorf("%s covers %s = %v, want %v", test.file, test.page, got, test.want)
			}
		})
	}
}
