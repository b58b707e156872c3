package collyfetch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

var longContact = "https://example.com/" + strings.Repeat("x", collyfetch.MaxContactBytes-len("https://example.com/"))

func TestIsContact(t *testing.T) {
	for contact, want := range map[string]bool{
		"https://example.com/bot": true, "http://example.com": true, "mailto:bot@example.com": true,
		"bot@example.com": false, "mailto:": false, "mailto:Bot <bot@example.com>": false, "https://": false,
		"ftp://example.com/": false, "https://example.com/ (x)": false, "https://example.com/)\r\nX: y": false, "": false,
		"https://example.com/%C3%BC": true, "https://example.com/\u00fc": false, "https://example.com/\u0085": false,
		"mailto:\u00fc@example.com": false, "mailto:b\x7f@example.com": false, longContact: true, longContact + "x": false,
	} {
		if got := collyfetch.IsContact(contact); got != want {
			t.Errorf("%q: %v, want %v", contact, got, want)
		}
	}
}

// TestInvalidIdentity: what no header may hold, or would make each request one that
// servers refuse, is refused before there is a request.
func TestInvalidIdentity(t *testing.T) {
	long := strings.Repeat("x", collyfetch.MaxProductBytes+1)
	for _, agent := range []string{long, "bot/" + long, "bot/1\x7f", "bot/1\n", "bot/\u00fc"} {
		if c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{Agent: agent, Contact: "mailto:bot@example.com"}); err == nil {
			t.Errorf("agent %q is taken", agent)
			c.Close()
		}
	}
	for _, cfg := range []collyfetch.Config{
		{UserAgent: "bot/1\x00"}, {UserAgent: "bot/1", From: "a@b.example\r\nX: y"},
		{UserAgent: "bot/1", Headers: http.Header{"X-Shelf": {"a\nb"}}}, {UserAgent: "bot/1", Headers: http.Header{"X-Shelf": {strings.Repeat("x", 5000)}}},
	} {
		if _, err := collyfetch.NewHTTPFetcher(cfg); err == nil {
			t.Errorf("%.60q is taken", fmt.Sprint(cfg.UserAgent, cfg.From, cfg.Headers))
		}
	}
}
