package httpfetch_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// TestInvalidIdentity: what no header may hold, or would make each request one that
// servers refuse, is refused before there is a request.
func TestInvalidIdentity(t *testing.T) {
	for _, cfg := range []httpfetch.Config{
		{UserAgent: "bot/1\x00"}, {UserAgent: "bot/1", From: "a@b.example\r\nX: y"},
		{UserAgent: "bot/1", Headers: http.Header{"X-Shelf": {"a\nb"}}}, {UserAgent: "bot/1", Headers: http.Header{"X-Shelf": {strings.Repeat("x", 5000)}}},
	} {
		if _, err := httpfetch.New(cfg); err == nil {
			t.Errorf("%.60q is taken", fmt.Sprint(cfg.UserAgent, cfg.From, cfg.Headers))
		}
	}
}
