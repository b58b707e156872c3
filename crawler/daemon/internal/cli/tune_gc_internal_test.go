package cli

import "testing"

// TestGCPercent: a small heap may have twice its size in garbage; of what is beyond 24 MiB, half.
func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 200, 1: 200, 24 << 20: 200, 48 << 20: 125, 72 << 20: 100, 1 << 40: 50} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d live bytes: %d, want %d", live, got, want)
		}
	}
}
