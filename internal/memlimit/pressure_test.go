package memlimit

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func TestPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live, changes := int64(0), 0
		p := NewPressureMonitor(Limit{Bytes: 1000}, func() int64 {
			return live
		}, func(bool, int64, int64) { changes++ })
		for _, step := range []struct {
			live    int64
			low     bool
			changes int
		}{{100, false, 0}, {749, false, 0}, {750, true, 1}, {990, true, 1}, {650, true, 1}, {649, false, 2},
			{700, false, 2}, {800, true, 3}} {
			live = step.live
			time.Sleep(maxReadingAge)
			if low := p.IsMemoryLow(); low != step.low || changes != step.changes {
				t.Errorf("%d of 1000 bytes: low %t, changed %d times, want %t, %d", live, low,
					changes, step.low, step.changes)
			}
		}
	})
}

func TestPressureWithoutALimit(t *testing.T) {
	var none *PressureMonitor
	if none.IsMemoryLow() || NewPressureMonitor(Limit{}, func() int64 { return 1 << 50 }, nil).IsMemoryLow() {
		t.Error("low where no limit is known")
	}
}

// Live memory counts, and garbage does not.
func TestLiveBytes(t *testing.T) {
	const size = 64 << 20
	runtime.GC()
	before := LiveBytes()
	held := make([]byte, size)
	runtime.GC()
	during := LiveBytes()
	runtime.KeepAlive(held)
	held = nil
	runtime.GC()
	after := LiveBytes()
	if during-before < size*9/10 || during-after < size*9/10 {
		t.Errorf("live %d, then with %d bytes more %d, then %d", before, size, during, after)
	}
}
