package decorum_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func retryAfter(value string) time.Duration {
	r := decorum.Response{Header: http.Header{"Retry-After": {value}}}
	return r.RetryAfter(noon)
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"":                                0,
		"120":                             2 * time.Minute,
		" 7 ":                             7 * time.Second,
		"0":                               0,
		"-5":                              0,
		"1.5":                             0,
		"soon":                            0,
		"18446744073709551616":            9223372036 * time.Second,
		"99999999999999999999999":         9223372036 * time.Second,
		"9223372037":                      9223372036 * time.Second,
		"Sun, 01 Mar 2026 12:10:00 GMT":   10 * time.Minute,
		"Sunday, 01-Mar-26 12:10:00 GMT":  10 * time.Minute,
		"Sun Mar  1 12:10:00 2026":        10 * time.Minute,
		"Sun, 01 Mar 2026 11:59:00 GMT":   0,
		"Sun, 01 Mar 2026 12:10:00 +0100": 0,
	} {
		if got := retryAfter(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	if got := (&decorum.Response{}).RetryAfter(noon); got != 0 {
		t.Errorf("without headers: %v", got)
	}
}

// FuzzRetryAfter proves that the wait is never negative, whatever a server sends.
func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "Sun, 01 Mar 2026 12:01:00 GMT", "-1", "9223372037"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := retryAfter(s); d < 0 {
			t.Errorf("%q: %v", s, d)
		}
	})
}
