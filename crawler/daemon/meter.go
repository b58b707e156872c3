package daemon

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A meter adds up what the runs of a project did. The project's limits are of a
// term: from its start, or its going on after a limit, however often it was
// reloaded in between.
type meter struct {
	mu     sync.Mutex
	past   api.ProjectStats // of runs that are over
	now    *crawler.Crawler
	term   api.ProjectStats // when the term began
	worked time.Duration
	since  time.Time // of the run that goes on
	lately throughput
}

// A rest of a project's limits; 0: no limit.
type leftover struct {
	pages, bytes int64
	duration     time.Duration
}

// renew begins another term.
func (m *meter) renew() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term, m.worked = m.stats(), 0
}

// left returns what is left of the limits, or which of them is reached.
func (m *meter) left(l Limits) (left leftover, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats()
	left.pages = int64(l.Pages) - (s.Pages - m.term.Pages)
	left.bytes = int64(l.Bytes) - (s.Bytes - m.term.Bytes)
	left.duration = time.Duration(l.Duration) - m.worked
	switch {
	case l.Pages == 0:
		left.pages = 0
	case left.pages <= 0:
		return left, crawler.ErrPages
	}
	switch {
	case l.Bytes == 0:
		left.bytes = 0
	case left.bytes <= 0:
		return left, crawler.ErrBytes
	}
	switch {
	case l.Duration == 0:
		left.duration = 0
	case left.duration <= 0:
		return left, errTime
	}
	return left, nil
}

// begin is the beginning of a run.
func (m *meter) begin(c *crawler.Crawler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now, m.since = c, time.Now()
}

// end is the end of the run.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past = m.stats()
	m.worked += time.Since(m.since)
	m.now = nil
}

// read returns what the project has done.
func (m *meter) read() api.ProjectStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats()
}

// machine returns why no visit may begin now, and the limit of concurrent visits while
// the machine is too busy: see crawler.Stats.
func (m *meter) machine() (paused string, visitLimit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil {
		return "", 0
	}
	s := m.now.Stats()
	return s.MachinePauseReason, s.ConcurrencyLimit
}

// stats needs the lock.
func (m *meter) stats() api.ProjectStats {
	s := m.past
	if m.now == nil {
		return s
	}
	now := m.now.Stats()
	s.Pages += now.Pages
	s.RobotsFetches += now.RobotsFetched
	s.SitemapFetches += now.SitemapsFetched
	s.Bytes += now.Bytes
	s.Errors += now.Errors
	s.BlockedURLs += now.Blocked
	s.Retries += now.Retries
	s.GivenUp += now.GivenUp
	s.Panics += now.Panics
	s.LocalFaults += now.LocalFaults
	return s
}

// sample takes a sample of what was done since the last.
func (m *meter) sample(now time.Time, queued int) api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lately.read(statsSnapshot{now, m.stats()}, queued)
}

// rate returns what was done in the last seconds, on average.
func (m *meter) rate() api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lately.rate()
}

// samples returns what was done lately.
func (m *meter) samples(coarse bool) []api.ThroughputSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	if coarse {
		return m.lately.coarse.samples()
	}
	return m.lately.fine.samples()
}
