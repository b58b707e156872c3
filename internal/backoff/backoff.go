// Package backoff computes how long to wait after consecutive failures: package politeness uses it
// for hosts and pages, package robots for a robots.txt that cannot be fetched. It starts no
// goroutine and has no lock.
package backoff

import (
	"math"
	"time"
)

// Delay returns first, doubled for each failure after the first, and at most limit. first and limit
// must not be negative.
func Delay(first, limit time.Duration, failures int) time.Duration {
	d := min(first, limit)
	for i := 1; i < failures && 0 < d && d < limit; i++ {
		d += min(d, limit-d) // twice as much, without overflow
	}
	return d
}

// DelayByFactor returns first, multiplied by factor for each failure after the first, and at most
// limit. first and limit must not be negative, and factor must be at least 1.
func DelayByFactor(first, limit time.Duration, factor float64, failures int) time.Duration {
	d := float64(first)
	if first > 0 {
		d *= math.Pow(factor, float64(max(failures-1, 0)))
	}
	if d < float64(limit) {
		return time.Duration(d)
	}
	return limit
}
