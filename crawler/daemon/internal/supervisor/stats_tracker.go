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

// A projectStatsTracker adds up the work of a project's runs in this process. The limits of the project
// apply to a limit period, which begins when a user starts or resumes the project. A reload of the file
// does not begin a new one.
type projectStatsTracker struct {
	// mu guards finishedRunsStats, currentCrawler, limitPeriodStartStats, limitPeriodRunTime, runStart
	// and throughputHistory.
	mu                    sync.Mutex
	finishedRunsStats     api.ProjectStats // total of the finished runs
	currentCrawler        *crawler.Crawler // nil between runs
	limitPeriodStartStats api.ProjectStats // totals when the limit period began
	limitPeriodRunTime    time.Duration    // of the finished runs of the limit period
	runStart              time.Time        // of the current run
	throughputHistory     throughputHistory

	// mustResetSharedCounts is set until the next run has reset the counts of the limits that processes
	// share in Redis.
	mustResetSharedCounts atomic.Bool
}

// resetLimitUsage begins a new limit period, also for the limits that processes share.
func (m *projectStatsTracker) resetLimitUsage() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limitPeriodStartStats, m.limitPeriodRunTime = m.totalStatsLocked(), 0
	m.mustResetSharedCounts.Store(true)
}

// remainingLimits returns the unused part of the limits in this limit period; 0 means no limit. If a
// limit is reached, it returns crawler.ErrPages, crawler.ErrBytes or engine.ErrTimeLimit.
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

// beginRun records that c begins a run.
func (m *projectStatsTracker) beginRun(c *crawler.Crawler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.currentCrawler, m.runStart = c, time.Now()
}

// endRun records the end of the run, and adds its totals to those of the finished runs.
func (m *projectStatsTracker) endRun() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finishedRunsStats = m.totalStatsLocked()
	m.limitPeriodRunTime += time.Since(m.runStart)
	m.currentCrawler = nil
}

// setStats sets in p the totals and the recent throughput of the project and, during a run, why no
// visit may begin and the limit of concurrent visits while the machine is too busy: see crawler.Stats.
func (m *projectStatsTracker) setStats(p *api.Project) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.Stats, p.RecentThroughput = m.totalStatsLocked(), m.throughputHistory.recentThroughput()
	if m.currentCrawler != nil {
		s := m.currentCrawler.Stats()
		p.MachinePauseReason, p.MachineLoadVisitLimit = s.MachinePauseReason, s.MachineConcurrencyLimit
	}
}

// totalStatsLocked returns the totals of the finished runs and of the current one. The caller holds m.mu.
func (m *projectStatsTracker) totalStatsLocked() api.ProjectStats {
	s := m.finishedRunsStats
	if m.currentCrawler == nil {
		return s
	}
	currentStats := m.currentCrawler.Stats()
	s.Pages += currentStats.Pages
	s.RobotsFetches += currentStats.RobotsFetches
	s.SitemapFetches += currentStats.SitemapFetches
	(*crawler.HostTraffic)(&s.HostTraffic).Add(currentStats.HostTraffic)
	s.Errors += currentStats.Errors
	s.BlockedURLs += currentStats.BlockedURLs
	s.Retries += currentStats.Retries
	s.GivenUp += currentStats.GivenUp
	s.Panics += currentStats.Panics
	s.LocalFaults += currentStats.LocalFaults
	s.StaleConns += currentStats.StaleConns
	return s
}

// takeSample returns, and stores, a sample of the throughput since the last sample.
func (m *projectStatsTracker) takeSample(now time.Time, queued int) api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.throughputHistory.addSnapshot(statsSnapshot{now, m.totalStatsLocked()}, queued)
}

// throughputSamples returns the stored samples, the oldest first: one per minute or one per second.
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
	rateWindowSamples = 10   // per-second samples that recentThroughput averages
)

// A throughputHistory holds the latest throughput samples of a project. Callers serialize its methods.
type throughputHistory struct {
	perSecondSamples, perMinuteSamples []api.ThroughputSample // the oldest first
	currentMinuteSeconds               int                    // seconds of the current minute so far
	lastSnapshot                       statsSnapshot
	minuteStartSnapshot                statsSnapshot // at the start of the current minute
}

// A statsSnapshot is the totals of a project at one moment.
type statsSnapshot struct {
	at    time.Time
	stats api.ProjectStats
}

// addSnapshot stores and returns a sample of the time since the last snapshot, about a second. Every
// 60th call also stores a sample of the minute.
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

// recentThroughput returns the average of the last rateWindowSamples seconds.
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

// rateBetween returns the average rates per second between two snapshots.
func rateBetween(from, to statsSnapshot, queued int) api.ThroughputSample {
	s := api.ThroughputSample{At: to.at.UTC(), QueuedURLs: queued}
	if seconds := to.at.Sub(from.at).Seconds(); seconds > 0 {
		s.PagesPerSecond = float64(to.stats.Pages-from.stats.Pages) / seconds
		s.BytesPerSecond = float64(to.stats.Bytes-from.stats.Bytes) / seconds
		s.ErrorsPerSecond = float64(to.stats.Errors-from.stats.Errors) / seconds
	}
	return s
}

// appendSample appends a sample, and drops the oldest sample if there are already capacity of them.
func appendSample(samples []api.ThroughputSample, s api.ThroughputSample, capacity int) []api.ThroughputSample {
	if len(samples) == capacity {
		samples = slices.Delete(samples, 0, 1)
	}
	return append(samples, s)
}
