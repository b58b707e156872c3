package memlimit

import (
	"runtime/metrics"
	"sync"
	"time"
)

// Memory becomes low at lowShare of the limit, and stops being low below recoveredShare. The distance
// between them keeps PressureMonitor from changing at every reading.
const (
	lowShare       = 0.75
	recoveredShare = 0.65
)

// maxReadingAge is how long a reading stays valid.
const maxReadingAge = 100 * time.Millisecond

// A PressureMonitor says whether the live memory of the process is near its limit. Live memory is
// what the last garbage collection found to be in use, plus stacks and the runtime's own memory.
// Garbage does not count: it grows up to the limit in every process that has one, and is then
// collected.
type PressureMonitor struct {
	limit            int64 // bytes; 0: unknown
	measureLiveBytes func() int64
	onChange         func(low bool, kept, limit int64) // called with mu held when isMemoryLow changes

	mu          sync.Mutex // guards checkedAt and isMemoryLow
	checkedAt   time.Time  // time of the last reading
	isMemoryLow bool
}

// NewPressureMonitor returns a PressureMonitor for limit. IsMemoryLow calls onChange when memory
// becomes low and when it stops being low, one call at a time. onChange must not block, and must
// not call IsMemoryLow. liveBytes returns the bytes of live memory; nil: LiveBytes.
func NewPressureMonitor(limit Limit, liveBytes func() int64,
	onChange func(low bool, liveBytes, limit int64)) *PressureMonitor {
	if liveBytes == nil {
		liveBytes = LiveBytes
	}
	return &PressureMonitor{limit: limit.Bytes, measureLiveBytes: liveBytes, onChange: onChange}
}

// IsMemoryLow reports whether memory is nearly used up. It is quick, because it takes a reading at
// most ten times a second. It returns false if no limit is known, and on a nil PressureMonitor.
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

// measureAndNotifyOnChange takes a reading. The caller holds p.mu.
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

// LiveBytes returns the bytes of live memory: see PressureMonitor.
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
