package memlimit

import (
	"runtime/metrics"
	"sync"
	"time"
)

// Memory becomes low at lowShare of the limit, and stops being low below easyShare, so
// that Pressure does not flutter.
const (
	lowShare  = 0.75
	easyShare = 0.65
)

// pressureAge is how long a reading stays valid.
const pressureAge = 100 * time.Millisecond

// A Pressure says whether the memory that the process keeps is near its limit.
// What it keeps is what the last garbage collection found to be in use, with
// stacks and the runtime's own memory. Garbage does not count: it grows to the
// limit in every process that has one, and then is collected.
type Pressure struct {
	limit     int64
	liveBytes func() int64
	changed   func(low bool, kept, limit int64) // called when low changes

	mu  sync.Mutex // guards the fields below
	at  time.Time
	low bool
}

// NewPressure returns a Pressure against limit. changed is called when memory becomes
// low, and when it stops being low, one call at a time; it must not block. kept returns
// the bytes that the process keeps; nil: Kept.
func NewPressure(limit Limit, liveBytes func() int64, changed func(low bool, liveBytes, limit int64)) *Pressure {
	if liveBytes == nil {
		liveBytes = LiveBytes
	}
	return &Pressure{limit: limit.Bytes, liveBytes: liveBytes, changed: changed}
}

// Low reports whether memory is nearly used up. It is quick, since it reads the memory
// at most ten times a second. It returns false if no limit is known, and on a nil
// Pressure.
func (p *Pressure) Low() bool {
	if p == nil || p.limit == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.at) >= pressureAge {
		p.at = now
		p.look()
	}
	return p.low
}

// look reads the kept memory. It requires mu.
func (p *Pressure) look() {
	share := lowShare
	if p.low {
		share = easyShare
	}
	live := p.liveBytes()
	if low := float64(live) >= share*float64(p.limit); low != p.low {
		p.low = low
		p.changed(low, live, p.limit)
	}
}

// LiveBytes returns how many bytes the process keeps: see Pressure.
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
