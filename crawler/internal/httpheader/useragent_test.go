package httpheader_test

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

var longContact = "https://example.com/" + strings.Repeat("x", httpheader.MaxContactBytes-len("https://example.com/"))

func TestIsContact(t *testing.T) {
	for contact, want := range map[string]bool{
		"https://example.com/bot": true, "http://example.com": true, "mailto:bot@example.com": true,
		"bot@example.com": false, "mailto:": false, "mailto:Bot <bot@example.com>": false, "https://": false,
		"ftp://example.com/": false, "https://example.com/ (x)": false,
		"https://example.com/)\r\nX: y": false, "": false,
		"https://example.com/%C3%BC": true, "https://example.com/\u00fc": false, "https://example.com/\u0085": false,
		"mailto:\u00fc@example.com": false, "mailto:b\x7f@example.com": false,
		longContact: true, longContact + "x": false,
	} {
		if got := httpheader.IsContact(contact); got != want {
			t.Errorf("%q: %v, want %v", contact, got, want)
		}
	}
}

// TestParseUserAgent: the error of an invalid User-Agent names the form, or the part that is invalid.
func TestParseUserAgent(t *testing.T) {
	for userAgent, want := range map[string]string{
		"bot/1.0 (+https://example.com/bot)": "", "bot/1.0 (+mailto:bot@example.com)": "",
		"": "expected product/version", "bot/1.0": "expected product/version",
		"Mozilla/5.0 (compatible; bot/1.0; +https://example.com/bot)": "expected product/version",
		"bot (+https://example.com/bot)":                              "expected product/version",
		"bot/1.0 (+https://example.com/bot) Go":                       "expected product/version",
		"/1.0 (+https://example.com/bot)":                             "expected product/version",
		"bot/1.0 (+example.com)":                                      `contact "example.com"`,
		"my bot/1.0 x (+https://example.com/bot)":                     "expected product",
	} {
		if _, _, err := httpheader.ParseUserAgent(userAgent); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", userAgent, err, want)
		}
	}
}
