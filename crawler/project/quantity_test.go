package project

import (
	"math"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
		said string // as String says it
	}{
		{"0", 0, "0s"},
		{"500ms", 500 * time.Millisecond, "500ms"},
		{"1s", time.Second, "1s"},
		{"90s", 90 * time.Second, "1m30s"},
		{"10m", 10 * time.Minute, "10m"},
		{"24h", 24 * time.Hour, "24h"},
		{"30d", 30 * day, "720h"},
		{"1d12h", 36 * time.Hour, "36h"},
		{"1h0m5s", time.Hour + 5*time.Second, "1h0m5s"},
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(tt.text)); err != nil || time.Duration(d) != tt.want {
			t.Errorf("%q: %v, %v, want %v", tt.text, time.Duration(d), err, tt.want)
		}
		if d.String() != tt.said {
			t.Errorf("%q is written as %q, want %q", tt.text, d, tt.said)
		}
		if again := Duration(-1); again.UnmarshalText([]byte(d.String())) != nil || again != d {
			t.Errorf("%q, written as %q, is read back as %v", tt.text, d, again)
		}
	}
	for _, text := range []string{"", "5", "-1s", "1 s", "d", "-1d", "1.5d", "1d-1h", "99999d99999h",
		"106752d", "65536d", "1w", "1dd"} {
		d := Duration(7)
		if err := d.UnmarshalText([]byte(text)); err == nil || d != 7 {
			t.Errorf("%q is read as %v, want an error", text, d)
		}
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		said string
	}{
		{"0", 0, "0"},
		{"1048576", 1 << 20, "1MiB"},
		{"512KiB", 512 << 10, "512KiB"},
		{"10MiB", 10 << 20, "10MiB"},
		{"10 MiB", 10 << 20, "10MiB"},
		{"1GB", 1e9, "1000000000"},
		{"2kB", 2000, "2000"},
		{"3B", 3, "3"},
		{"8388607TiB", math.MaxInt64 - 1<<40 + 1, "8388607TiB"},
	} {
		var s Size
		if err := s.UnmarshalText([]byte(tt.text)); err != nil || int64(s) != tt.want {
			t.Errorf("%q: %d, %v, want %d", tt.text, s, err, tt.want)
		}
		if s.String() != tt.said {
			t.Errorf("%q is written as %q, want %q", tt.text, s, tt.said)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "10MIB", "10 megs", "8388608TiB", "1MiBMiB"} {
		s := Size(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q is read as %d, want an error", text, s)
		}
	}
}
