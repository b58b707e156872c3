package supervisor

import (
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// How many samples of a project's throughput are stored.
const (
	maxSecondSamples  = 600  // one a second
	maxMinuteSamples  = 1440 // one a minute
	rateWindowSamples = 10   // of the fine ones, that a project's rate is of
)

// A throughputHistory holds samples of what a project did lately. Callers serialize its methods.
type throughputHistory struct {
	perSecondSamples, perMinuteSamples sampleRing
	currentMinuteSeconds               int // of the minute that goes on
	lastSnapshot                       statsSnapshot
	minuteStartSnapshot                statsSnapshot // when it began
}

// A statsSnapshot is the totals of a project at a moment.
type statsSnapshot struct {
	at    time.Time
	stats api.ProjectStats
}

// addSnapshot takes a sample of the second before now.
func (t *throughputHistory) addSnapshot(snapshot statsSnapshot, queued int) api.ThroughputSample {
	if t.lastSnapshot.at.IsZero() {
		t.lastSnapshot, t.minuteStartSnapshot = snapshot, snapshot
	}
	s := rateBetween(t.lastSnapshot, snapshot, queued)
	t.lastSnapshot = snapshot
	t.perSecondSamples.add(s, maxSecondSamples)
	if t.currentMinuteSeconds++; t.currentMinuteSeconds >= 60 {
		t.perMinuteSamples.add(rateBetween(t.minuteStartSnapshot, snapshot, queued), maxMinuteSamples)
		t.minuteStartSnapshot, t.currentMinuteSeconds = snapshot, 0
	}
	return s
}

// recentThroughput returns the average of the last seconds.
func (t *throughputHistory) recentThroughput() api.ThroughputSample {
	var mean api.ThroughputSample
	recent := t.perSecondSamples.samples()
	recent = recent[max(0, len(recent)-rateWindowSamples):]
	for _, s := range recent {
		mean.At, mean.QueuedURLs = s.At, s.QueuedURLs
		mean.PagesPerSecond += s.PagesPerSecond / float64(len(recent))
		mean.BytesPerSecond += s.BytesPerSecond / float64(len(recent))
		mean.ErrorsPerSecond += s.ErrorsPerSecond / float64(len(recent))
	}
	return mean
}

// rateBetween returns what happened per second from one snapshot to another.
func rateBetween(from, to statsSnapshot, queued int) api.ThroughputSample {
	s := api.ThroughputSample{At: to.at.UTC(), QueuedURLs: queued}
	if seconds := to.at.Sub(from.at).Seconds(); seconds > 0 {
		s.PagesPerSecond = float64(to.stats.Pages-from.stats.Pages) / seconds
		s.BytesPerSecond = float64(to.stats.Bytes-from.stats.Bytes) / seconds
		s.ErrorsPerSecond = float64(to.stats.Errors-from.stats.Errors) / seconds
	}
	return s
}

// A sampleRing keeps the newest samples.
type sampleRing struct {
	buf  []api.ThroughputSample
	next int // the oldest, once it is full
}

func (r *sampleRing) add(s api.ThroughputSample, capacity int) {
	if len(r.buf) < capacity {
		r.buf = append(r.buf, s)
		return
	}
	r.buf[r.next] = s
	r.next = (r.next + 1) % capacity
}

// samples returns a copy, the oldest first.
func (r *sampleRing) samples() []api.ThroughputSample {
	return append(append(make([]api.ThroughputSample, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
}
