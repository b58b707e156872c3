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
	stats api.ProjectStats
}

// read takes a sample of the second before now.
func (t *throughput) read(now statsSnapshot, queued int) api.ThroughputSample {
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
func (t *throughput) rate() api.ThroughputSample {
	var mean api.ThroughputSample
	last := t.fine.samples()
	last = last[max(0, len(last)-rateSamples):]
	for _, s := range last {
		mean.At, mean.QueuedURLs = s.At, s.QueuedURLs
		mean.PagesPerSecond += s.PagesPerSecond / float64(len(last))
		mean.BytesPerSecond += s.BytesPerSecond / float64(len(last))
		mean.ErrorsPerSecond += s.ErrorsPerSecond / float64(len(last))
	}
	return mean
}

// between returns what happened a second from one reading to another.
func between(from, to statsSnapshot, queued int) api.ThroughputSample {
	s := api.ThroughputSample{At: to.at.UTC(), QueuedURLs: queued}
	if seconds := to.at.Sub(from.at).Seconds(); seconds > 0 {
		s.PagesPerSecond = float64(to.stats.Pages-from.stats.Pages) / seconds
		s.BytesPerSecond = float64(to.stats.Bytes-from.stats.Bytes) / seconds
		s.ErrorsPerSecond = float64(to.stats.Errors-from.stats.Errors) / seconds
	}
	return s
}

// A ring keeps the newest samples.
type ring struct {
	buf  []api.ThroughputSample
	next int // the oldest, once it is full
}

func (r *ring) add(s api.ThroughputSample, capacity int) {
	if len(r.buf) < capacity {
		r.buf = append(r.buf, s)
		return
	}
	r.buf[r.next] = s
	r.next = (r.next + 1) % capacity
}

// samples returns a copy, the oldest first.
func (r *ring) samples() []api.ThroughputSample {
	return append(append(make([]api.ThroughputSample, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
}
