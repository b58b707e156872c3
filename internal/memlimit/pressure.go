package memlimit

import (
	"runtime/metrics"
	"sync"
	"time"
)

// Memory becomes low at lowShare of the limit, and stops being low below recoveredShare, so
// that PressureMonitor does not flutter.
const (
	lowShare       = 0.75
	recoveredShare = 0.65
)

// maxReadingAge is how long a reading stays valid.
const maxReadingAge = 100 * time.Millisecond

// A PressureMonitor says whether the memory that the process keeps is near its limit.
// What it keeps is what the last garbage collection found to be in use, with
// stacks and the runtime's own memory. Garbage does not count: it grows to the
// limit in every process that has one, and then is collected.
type PressureMonitor struct {
	limit            int64
	measureLiveBytes func() int64
	onChange         func(low bool, kept, limit int64) // called when low changes

	mu          sync.Mutex // guards the fields below
	checkedAt   time.Time
	isMemoryLow bool
}

// NewPressureMonitor returns a PressureMonitor against limit. changed is called when memory becomes
// low, and when it stops being low, one call at a time; it must not block. kept returns
// the bytes that the process keeps; nil: Kept.
func NewPressureMonitor(limit Limit, liveBytes func() int64, onChange func(low bool, liveBytes, limit int64)) *PressureMonitor {
	if liveBytes == nil {
		liveBytes = LiveBytes
	}
	return &PressureMonitor{limit: limit.Bytes, measureLiveBytes: liveBytes, onChange: onChange}
}

// IsMemoryLow reports whether memory is nearly used up. It is quick, since it reads the memory
// at most ten times a second. It returns false if no limit is known, and on a nil
// Pressure.
func (p *PressureMonitor) IsMemoryLow() bool {
	if p == nil || p.limit == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.checkedAt) >= maxReadingAge {
		p.checkedAt = now
		p.measureAndNotifyOnChange()
	}
	return p.isMemoryLow
}

// measureAndNotifyOnChange reads the kept memory. It requires mu.
func (p *PressureMonitor) measureAndNotifyOnChange() {
	share := lowShare
	if p.isMemoryLow {
		share = recoveredShare
	}
	live := p.measureLiveBytes()
	if low := float64(live) >= share*float64(p.limit); low != p.isMemoryLow {
		p.isMemoryLow = low
		p.onChange(low, live, p.limit)
	}
}

// LiveBytes returns how many bytes the process keeps: see PressureMonitor.
func LiveBytes() int64 {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	live, other := samples[0].Value.Uint64(), samples[1].Value.Uint64()
	for _, heap := range samples[2:] {
		other -= min(other, heap.Value.Uint64())
	}
	return int64(live + other)
}
