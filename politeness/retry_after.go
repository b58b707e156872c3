package politeness

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseRetryAfter reads the value of a Retry-After header (RFC 9110 §10.2.3),
// seconds or an HTTP date, as a duration from now. It returns 0 for a value
// that says neither, and for a moment that has passed. Large values are
// returned as they are: Policy.MaxRetryAfter bounds them.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		const maxSeconds = int64(1<<63-1) / int64(time.Second)
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n > maxSeconds {
			n = maxSeconds // too large a number is still a wish to be left alone
		}
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
