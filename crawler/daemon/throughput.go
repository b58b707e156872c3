package daemon

import (
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// What is kept of a project's throughput.
const (
	fineSamples   = 600  // one a second
	coarseSamples = 1440 // one a minute
	rateSamples   = 10   // of the fine ones, that a project's rate is of
)

// Throughput is what a project did lately. It needs its owner's lock.
type throughput struct {
	fine, coarse ring
	seconds      int // of the minute that goes on
	last         statsSnapshot
	minute       statsSnapshot // when it began
}

// A statsSnapshot is what a project's meters show at a moment.
type statsSnapshot struct {
	at    time.Time
	stats api.Stats
}

// read takes a sample of the second before now.
func (t *throughput) read(now statsSnapshot, queued int) api.Sample {
	if t.last.at.IsZero() {
		t.last, t.minute = now, now
	}
	s := between(t.last, now, queued)
	t.last = now
	t.fine.add(s, fineSamples)
	if t.seconds++; t.seconds >= 60 {
		t.coarse.add(between(t.minute, now, queued), coarseSamples)
		t.minute, t.seconds = now, 0
	}
	return s
}

// rate returns the average of the last seconds.
func (t *throughput) rate() api.Sample {
	var mean api.Sample
	last := t.fine.samples()
	last = last[max(0, len(last)-rateSamples):]
	for _, s := range last {
		mean.At, mean.Queued = s.At, s.Queued
		mean.Pages += s.Pages / float64(len(last))
		mean.Bytes += s.Bytes / float64(len(last))
		mean.Errors += s.Errors / float64(len(last))
	}
	return mean
}

// between returns what happened a second from one reading to another.
func between(from, to statsSnapshot, queued int) api.Sample {
	s := api.Sample{At: to.at.UTC(), Queued: queued}
	if seconds := to.at.Sub(from.at).Seconds(); seconds > 0 {
		s.Pages = float64(to.stats.Pages-from.stats.Pages) / seconds
		s.Bytes = float64(to.stats.Bytes-from.stats.Bytes) / seconds
		s.Errors = float64(to.stats.Errors-from.stats.Errors) / seconds
	}
	return s
}

// A ring keeps the newest samples.
type ring struct {
	buf  []api.Sample
	next int // the oldest, once it is full
}

func (r *ring) add(s api.Sample, capacity int) {
	if len(r.buf) < capacity {
		r.buf = append(r.buf, s)
		return
	}
	r.buf[r.next] = s
	r.next = (r.next + 1) % capacity
}

// samples returns a copy, the oldest first.
func (r *ring) samples() []api.Sample {
	return append(append(make([]api.Sample, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
}
