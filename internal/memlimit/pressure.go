package memlimit

import (
	"runtime/metrics"
	"sync"
	"time"
)

// Shares of the limit between which Pressure changes its mind: it is low from
// lowShare on, and not any more below easyShare, so that it does not flutter.
const (
	lowShare  = 0.75
	easyShare = 0.65
)

// pressureAge is how long a reading holds.
const pressureAge = 100 * time.Millisecond

// A Pressure says whether the memory that the process keeps is near its limit.
// What it keeps is what the last garbage collection found to be in use, with
// stacks and the runtime's own memory. Garbage does not count: it grows to the
// limit in every process that has one, and then is collected.
type Pressure struct {
	limit   int64
	kept    func() int64
	changed func(low bool, kept, limit int64) // called when low changes

	mu  sync.Mutex // guards what follows
	at  time.Time
	low bool
}

// NewPressure returns a Pressure against limit. changed is called each time that
// memory becomes low, and when it is not any more, one call at a time; it must not
// block. kept returns the bytes that are kept; nil: Kept.
func NewPressure(limit Limit, kept func() int64, changed func(low bool, kept, limit int64)) *Pressure {
	if kept == nil {
		kept = Kept
	}
	return &Pressure{limit: limit.Bytes, kept: kept, changed: changed}
}

// Low reports whether memory is nearly used up. It is quick: it looks at most ten
// times a second. It is false where no limit is known, and on a nil Pressure.
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

// look reads what is kept. It requires mu.
func (p *Pressure) look() {
	share := lowShare
	if p.low {
		share = easyShare
	}
	kept := p.kept()
	if low := float64(kept) >= share*float64(p.limit); low != p.low {
		p.low = low
		p.changed(low, kept, p.limit)
	}
}

// Kept returns how many bytes the process keeps: see Pressure.
func Kept() int64 {
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
