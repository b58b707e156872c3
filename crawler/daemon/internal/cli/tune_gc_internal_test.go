package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestGCPercent: a small heap may have one and a quarter times its size in garbage; what is beyond 24 MiB, half of
// its size.
func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 125, 1: 125, 24 << 20: 125, 48 << 20: 87, 72 << 20: 74, 1 << 40: 50} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d live bytes: %d, want %d", live, got, want)
		}
	}
}

// TestGCPercentIsAdapted: GOGC follows the live memory, also if the objects allocated just before and after
// stay reachable.
func TestGCPercentIsAdapted(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	small := []*int{new(int), new(int), new(int)}
	keepAdaptingGCPercent(200)
	small = append(small, new(int), new(int), new(int))
	large := make([]byte, 96<<20)
	gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for range 1000 {
		runtime.GC()
		runtime.Gosched() // the cleanup runs in another goroutine
		if metrics.Read(gogc); gogc[0].Value.Uint64() < 100 {
			runtime.KeepAlive(small)
			runtime.KeepAlive(large)
			return
		}
	}
	t.Errorf("GOGC is %d with 96 MiB of live memory", gogc[0].Value.Uint64())
}
