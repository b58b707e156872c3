package timecmp

import (
	"testing"
	"time"
)

func TestCompare(t *testing.T) {
	early := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	late, sameElsewhere := early.Add(1), early.In(time.FixedZone("", 3600))
	for _, tt := range []struct {
		name string
		of   func(a, b time.Time) time.Time
		a, b time.Time
		want time.Time
	}{
		{"Later", Later, early, late, late},
		{"Later", Later, late, early, late},
		{"Later", Later, early, sameElsewhere, early},
		{"Later", Later, time.Time{}, early, early},
		{"Earlier", Earlier, early, late, early},
		{"Earlier", Earlier, late, early, early},
		{"Earlier", Earlier, early, sameElsewhere, early},
		{"Earlier", Earlier, time.Time{}, early, time.Time{}},
		{"EarlierOfSet", EarlierOfSet, time.Time{}, late, late},
		{"EarlierOfSet", EarlierOfSet, early, late, early},
		{"EarlierOfSet", EarlierOfSet, late, early, early},
	} {
		if got := tt.of(tt.a, tt.b); got != tt.want {
			t.Errorf("%s(%v, %v) = %v, want %v", tt.name, tt.a, tt.b, got, tt.want)
		}
	}
}
