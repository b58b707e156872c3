package gate

import (
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
)

// TestRetryAfter proves that a failure waits for the Retry-After of its answer, in both forms, but at
// most a day.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              time.Minute,
		"soon":                          time.Minute,
		"30":                            time.Minute,
		"120":                           2 * time.Minute,
		"Sun, 01 Mar 2026 12:10:00 GMT": 10 * time.Minute,
		"86401":                         maxRetryAfter,
		"18446744073709551616":          maxRetryAfter,
	} {
		res := &decorum.Response{Status: 503, Header: http.Header{"Retry-After": {value}}}
		failure := newServerFailure(now, res, Backoff{First: time.Minute, Max: time.Hour})
		if got := failure.retryDelay(1); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestBackoff(t *testing.T) {
	b := Backoff{First: time.Minute, Max: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 5, 5: 5, 1 << 40: 5} {
		if got := b.delayAfter(failures); got != want*time.Minute {
			t.Errorf("after %d failures: %v, want %d min", failures, got, want)
		}
	}
}

// FuzzGateHeaders proves that no header can make the validity of an answer, or the wait after a failure,
// exceed its bounds.
func FuzzGateHeaders(f *testing.F) {
	f.Add("max-age=3600", "", "120")
	f.Add("no-cache,max-age=\"-1\"", "1", "Sun, 01 Mar 2026 12:10:00 GMT")
	f.Add("max-age=99999999999999999999", "9999999999999", "Fri, 31 Dec 9999 23:59:59 GMT")
	cfg := Config{}.withDefaults()
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	page := robotstest.URL(f, "https://example.com/robots.txt")
	f.Fuzz(func(t *testing.T, cacheControl, age, retryOrExpires string) {
		res := respondWith(503, "Cache-Control", cacheControl, "Age", age, "Expires", retryOrExpires,
			"Retry-After", retryOrExpires)(page)
		if d := cfg.responseTTL(now, res); d < cfg.MinTTL || d > cfg.MaxTTL {
			t.Errorf("Cache-Control %q, Age %q, Expires %q: valid for %v", cacheControl, age, retryOrExpires, d)
		}
		if d := newServerFailure(now, res, cfg.Backoff503).retryDelay(1); d < cfg.Backoff503.First ||
			d > maxRetryAfter {
			t.Errorf("Retry-After %q: wait %v", retryOrExpires, d)
		}
	})
}
