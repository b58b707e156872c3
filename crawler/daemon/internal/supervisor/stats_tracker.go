package supervisor

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// A projectStatsTracker adds up what the runs of a project did. The project's limits hold for a
// period: from its start, or from its resumption after a limit, however often it is reloaded
// in between.
type projectStatsTracker struct {
	mu                    sync.Mutex       // guards the fields below
	finishedRunsStats     api.ProjectStats // of runs that are over
	currentCrawler        *crawler.Crawler
	limitPeriodStartStats api.ProjectStats // when the period began
	limitPeriodRunTime    time.Duration
	runStart              time.Time // of the run that goes on
	throughputHistory     throughputHistory

	mustResetSharedCounts atomic.Bool // counts of limits that processes share must begin anew, and have not yet
}

// resetLimitUsage begins another period, also of the limits that processes share.
func (m *projectStatsTracker) resetLimitUsage() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limitPeriodStartStats, m.limitPeriodRunTime = m.totalStatsLocked(), 0
	m.mustResetSharedCounts.Store(true)
}

// remainingLimits returns what is left of the limits, or which of them is reached; 0: no limit.
func (m *projectStatsTracker) remainingLimits(limits project.LimitSettings) (project.LimitSettings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, left := m.totalStatsLocked(), limits
	left.Pages = max(0, limits.Pages-int(s.Pages-m.limitPeriodStartStats.Pages))
	left.Bytes = max(0, limits.Bytes-project.Size(s.Bytes-m.limitPeriodStartStats.Bytes))
	left.Duration = max(0, limits.Duration-project.Duration(m.limitPeriodRunTime))
	switch {
	case limits.Pages != 0 && left.Pages == 0:
		return left, crawler.ErrPages
	case limits.Bytes != 0 && left.Bytes == 0:
		return left, crawler.ErrBytes
	case limits.Duration != 0 && left.Duration == 0:
		return left, engine.ErrTimeLimit
	}
	return left, nil
}

// beginRun begins a run, of c.
func (m *projectStatsTracker) beginRun(c *crawler.Crawler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.currentCrawler, m.runStart = c, time.Now()
}

// endRun ends the run, and keeps its totals.
func (m *projectStatsTracker) endRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finishedRunsStats = m.totalStatsLocked()
	m.limitPeriodRunTime += time.Since(m.runStart)
	m.currentCrawler = nil
}

// setStats sets in p what the project has done, on the whole and in the last seconds; why no visit may
// begin now, and the limit of concurrent visits while the machine is too busy: see crawler.Stats.
func (m *projectStatsTracker) setStats(p *api.Project) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.Stats, p.RecentThroughput = m.totalStatsLocked(), m.throughputHistory.recentThroughput()
	if m.currentCrawler != nil {
		s := m.currentCrawler.Stats()
		p.MachinePauseReason, p.MachineLoadVisitLimit = s.MachinePauseReason, s.MachineConcurrencyLimit
	}
}

// totalStatsLocked returns what the project has done. It needs m.mu.
func (m *projectStatsTracker) totalStatsLocked() api.ProjectStats {
	s := m.finishedRunsStats
	if m.currentCrawler == nil {
		return s
	}
	currentStats := m.currentCrawler.Stats()
	s.Pages += currentStats.Pages
	s.RobotsFetches += currentStats.RobotsFetches
	s.SitemapFetches += currentStats.SitemapFetches
	s.Bytes += currentStats.Bytes
	s.Errors += currentStats.Errors
	s.BlockedURLs += currentStats.BlockedURLs
	s.Retries += currentStats.Retries
	s.GivenUp += currentStats.GivenUp
	s.Panics += currentStats.Panics
	s.LocalFaults += currentStats.LocalFaults
	return s
}

// takeSample takes a sample of what was done since the last.
func (m *projectStatsTracker) takeSample(now time.Time, queued int) api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.throughputHistory.addSnapshot(statsSnapshot{now, m.totalStatsLocked()}, queued)
}

// throughputSamples returns what was done lately.
func (m *projectStatsTracker) throughputSamples(perMinute bool) []api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	if perMinute {
		return slices.Clone(m.throughputHistory.perMinuteSamples)
	}
	return slices.Clone(m.throughputHistory.perSecondSamples)
}

// How many samples of a project's throughput are stored.
const (
	maxSecondSamples  = 600  // one a second
	maxMinuteSamples  = 1440 // one a minute
	rateWindowSamples = 10   // of the fine ones, that a project's rate is of
)

// A throughputHistory holds samples of what a project did lately. Callers serialize its methods.
type throughputHistory struct {
	perSecondSamples, perMinuteSamples []api.ThroughputSample // the newest, the oldest of them first
	currentMinuteSeconds               int                    // of the minute that goes on
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
	t.perSecondSamples = appendSample(t.perSecondSamples, s, maxSecondSamples)
	if t.currentMinuteSeconds++; t.currentMinuteSeconds >= 60 {
		minute := rateBetween(t.minuteStartSnapshot, snapshot, queued)
		t.perMinuteSamples = appendSample(t.perMinuteSamples, minute, maxMinuteSamples)
		t.minuteStartSnapshot, t.currentMinuteSeconds = snapshot, 0
	}
	return s
}

// recentThroughput returns the average of the last seconds.
func (t *throughputHistory) recentThroughput() api.ThroughputSample {
	var mean api.ThroughputSample
	recent := t.perSecondSamples[max(0, len(t.perSecondSamples)-rateWindowSamples):]
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

// appendSample appends a sample, and drops the oldest if there are capacity of them.
func appendSample(samples []api.ThroughputSample, s api.ThroughputSample, capacity int) []api.ThroughputSample {
	if len(samples) == capacity {
		samples = slices.Delete(samples, 0, 1)
	}
	return append(samples, s)
}
