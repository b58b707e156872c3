package supervisor

import (
	"sync"
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
	mustResetSharedCounts bool // counts of limits that processes share must begin anew, and have not yet
}

// remainingLimits are what is left of a project's limits; 0: no limit.
type remainingLimits struct {
	pages, bytes int64
	duration     time.Duration
}

// resetLimitUsage begins another period, also of the limits that processes share.
func (m *projectStatsTracker) resetLimitUsage() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limitPeriodStartStats, m.limitPeriodRunTime, m.mustResetSharedCounts = m.totalStatsLocked(), 0, true
}

// sharedCountsMustReset reports whether shared limits that are reached must count anew.
func (m *projectStatsTracker) sharedCountsMustReset() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mustResetSharedCounts
}

// sharedCountsWereReset records that the shared limits count anew.
func (m *projectStatsTracker) sharedCountsWereReset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mustResetSharedCounts = false
}

// remainingLimits returns what is left of the limits, or which of them is reached.
func (m *projectStatsTracker) remainingLimits(l project.LimitSettings) (remaining remainingLimits, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.totalStatsLocked()
	remaining.pages = int64(l.Pages) - (s.Pages - m.limitPeriodStartStats.Pages)
	remaining.bytes = int64(l.Bytes) - (s.Bytes - m.limitPeriodStartStats.Bytes)
	remaining.duration = time.Duration(l.Duration) - m.limitPeriodRunTime
	switch {
	case l.Pages == 0:
		remaining.pages = 0
	case remaining.pages <= 0:
		return remaining, crawler.ErrPages
	}
	switch {
	case l.Bytes == 0:
		remaining.bytes = 0
	case remaining.bytes <= 0:
		return remaining, crawler.ErrBytes
	}
	switch {
	case l.Duration == 0:
		remaining.duration = 0
	case remaining.duration <= 0:
		return remaining, engine.ErrTimeLimit
	}
	return remaining, nil
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

// totalStats returns what the project has done.
func (m *projectStatsTracker) totalStats() api.ProjectStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.totalStatsLocked()
}

// machinePauseAndLoadLimit returns why no visit may begin now, and the limit of concurrent visits while
// the machine is too busy: see crawler.Stats.
func (m *projectStatsTracker) machinePauseAndLoadLimit() (machinePauseReason string, concurrencyLimit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.currentCrawler == nil {
		return "", 0
	}
	s := m.currentCrawler.Stats()
	return s.MachinePauseReason, s.MachineConcurrencyLimit
}

// totalStatsLocked is totalStats for callers that hold m.mu.
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

// recentThroughput returns what was done in the last seconds, on average.
func (m *projectStatsTracker) recentThroughput() api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.throughputHistory.recentThroughput()
}

// throughputSamples returns what was done lately.
func (m *projectStatsTracker) throughputSamples(perMinute bool) []api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	if perMinute {
		return m.throughputHistory.perMinuteSamples.samples()
	}
	return m.throughputHistory.perSecondSamples.samples()
}
