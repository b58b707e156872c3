// Package timecmp returns the later or the earlier of two times, as max and min do for numbers. It
// starts no goroutine and has no lock.
package timecmp

import "time"

// Later returns the later of a and b.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earlier returns the earlier of a and b.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// EarlierOfSet returns the earlier of a and b, or b if a is zero.
func EarlierOfSet(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return Earlier(a, b)
}
