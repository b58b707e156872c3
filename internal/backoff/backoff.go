// Package backoff decides how long to wait after failures in a row: politeness for hosts and pages,
// robots for a robots.txt that cannot be fetched. It starts no goroutine and has no lock.
package backoff

import "time"

// Delay returns first, doubled for each failure after the first, and at most limit. Neither may be
// negative.
func Delay(first, limit time.Duration, failures int) time.Duration {
	d := min(first, limit)
	for i := 1; i < failures && 0 < d && d < limit; i++ {
		d += min(d, limit-d) // twice as much, without overflow
	}
	return d
}
