package backoff

import (
	"math"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	const limit = math.MaxInt64
	for _, tt := range []struct {
		first, limit time.Duration
		failures     int
		want         time.Duration
	}{
		{time.Minute, 5 * time.Minute, 0, time.Minute},
		{time.Minute, 5 * time.Minute, 1, time.Minute},
		{time.Minute, 5 * time.Minute, 2, 2 * time.Minute},
		{time.Minute, 5 * time.Minute, 3, 4 * time.Minute},
		{time.Minute, 5 * time.Minute, 4, 5 * time.Minute},
		{time.Minute, 5 * time.Minute, math.MaxInt, 5 * time.Minute},
		{time.Minute, 4 * time.Minute, 3, 4 * time.Minute},
		{time.Hour, time.Minute, 1, time.Minute},
		{time.Hour, time.Minute, 9, time.Minute},
		{0, time.Minute, math.MaxInt, 0},
		{limit/2 + 1, limit, 2, limit},
		{limit / 3, limit, math.MaxInt, limit},
	} {
		if got := Delay(tt.first, tt.limit, tt.failures); got != tt.want {
			t.Errorf("%v up to %v after %d failures: %v, want %v", tt.first, tt.limit, tt.failures, got, tt.want)
		}
	}
}
