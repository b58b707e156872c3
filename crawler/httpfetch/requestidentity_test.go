package httpfetch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestInvalidIdentity: New refuses a User-Agent, From or header value that is invalid in a header,
// or that servers would refuse with every request.
func TestInvalidIdentity(t *testing.T) {
	for _, cfg := range []httpfetch.Config{
		{}, {UserAgent: "bot/1"}, {UserAgent: "bot (+https://bot.test/)"}, {UserAgent: "bot/1 (+bot.test)"},
		{UserAgent: "Mozilla/5.0 (compatible; bot/1; +https://bot.test/)"},
		{UserAgent: "bot/1 (+https://bot.test/) Go"}, {UserAgent: "/1 (+https://bot.test/)"},
		{UserAgent: "bot/1\x00 (+https://bot.test/)"}, {UserAgent: userAgent, From: "a@b.example\r\nX: y"},
		{UserAgent: "bot/1 (+mailto:a@bot.test)", From: "b@bot.test"},
		{UserAgent: userAgent, Headers: http.Header{"X-Shelf": {"a\nb"}}},
		{UserAgent: userAgent, Headers: http.Header{"X-Shelf": {strings.Repeat("x", 5000)}}},
	} {
		if _, err := httpfetch.New(cfg); err == nil {
			t.Errorf("%.60q is accepted", fmt.Sprint(cfg.UserAgent, cfg.From, cfg.Headers))
		}
	}
}
