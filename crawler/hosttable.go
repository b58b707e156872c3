package crawler

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// hostTable holds the newest state of each host that is being visited, and of some
// that were, with its memo: a lease carries them as they were when it was made,
// and where a host has several slots, visits have ended since, whose strikes
// and counts must not be lost.
type hostTable struct {
	mu    sync.Mutex
	hosts map[string]*hostEntry
}

type hostEntry struct {
	HostStats
	state              storage.HostState   // but for the memo
	leaseCount         int                 // leases in hand
	firstVisitTokens   map[uint64]struct{} // of them, by token: first visits to a page
	requeuedOverBudget bool                // see Crawler.requeueOverHostBudget

	unchargedTimeouts int // time-outs in a row that were not charged to the host: see maxUnchargedTimeouts

	// saveLock is full from encoding the memo until the store has it, so that no
	// older one comes after it: a store that cannot write lets it take long.
	saveLock chan struct{}
}

// acquireHost begins the use of the memo of l's host.
func (ms *hostTable) acquireHost(l storage.Lease) {
	host := l.URL.Origin().Host()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[host]
	if m == nil {
		if ms.hosts == nil {
			ms.hosts = map[string]*hostEntry{}
		}
		if len(ms.hosts) >= maxCached { // the store has those that nobody uses
			maps.DeleteFunc(ms.hosts, func(_ string, m *hostEntry) bool { return m.leaseCount == 0 })
		}
		m = &hostEntry{state: l.HostState, firstVisitTokens: map[uint64]struct{}{}, saveLock: make(chan struct{}, 1)}
		ms.hosts[host] = m
	}
	if l.HostState.Due.After(m.state.Due) { // another process was there
		m.state = l.HostState
	}
	if stored := DecodeHostStats(l.HostState.EncodedStats); m.leaseCount == 0 && stored.Requests > m.Requests {
		m.HostStats = stored // the host is new here, or another process was there
	}
	m.leaseCount++
}

// releaseHost ends the use of the memo of l's host.
func (ms *hostTable) releaseHost(l storage.Lease) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.leaseCount--
	delete(m.firstVisitTokens, l.Token)
}

// lastVisitEnd returns when the last request to l's host ended, as far as it is known.
func (ms *hostTable) lastVisitEnd(l storage.Lease) time.Time {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()].LastEnd
}

// countVisit counts a visit, before which the delays declared and configured were
// in force.
func (ms *hostTable) countVisit(v *Visit, crawlDelay, configuredDelay time.Duration) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[v.Lease.URL.Origin().Host()]
	m.countPageIfFirstVisit(v)
	if v.reachedServer() {
		m.unchargedTimeouts = 0
	}
	m.CrawlDelay, m.ConfiguredDelay = crawlDelay, max(configuredDelay, 0)
	if v.Response != nil || !v.wasNeverSent() {
		m.HostStats.countVisit(v)
	}
}

func (m *HostStats) countVisit(v *Visit) {
	m.Requests++
	if v.Response == nil && !v.interrupted || isTransientStatus(v.Status()) {
		m.FailedRequests++
	}
	if v.Response != nil {
		m.Bytes += int64(v.BodyLen())
		if v.Kind.IsPage() {
			m.Pages++
			if v.contentWithheld {
				m.PagesWithheld++
			}
		}
		if addr := v.Response.Addr.Addr(); addr.IsValid() {
			m.Addr = addr
		}
	}
	m.TotalRequestTime += max(v.End.Sub(v.Start), 0)
	m.LastStatus = v.Status()
	m.recordVisitGap(v)
	m.LastEnd = timecmp.Later(m.LastEnd, v.End)
}

// recordVisitGap takes the gap before v. One that is negative is none: the clock was
// set back between two runs. Where visits overlap, the rest was owed when the
// lease was made, and not since the last visit ended.
func (m *HostStats) recordVisitGap(v *Visit) {
	gap := v.Start.Sub(v.previousEnd)
	if v.previousEnd.IsZero() || gap < 0 {
		return
	}
	m.Gaps.add(gap)
	shortfall := v.RequiredDelay() - gap
	if v.Lease.HostState.Slots > 1 {
		shortfall = v.Lease.HostState.Due.Sub(v.Start)
	}
	m.LargestDelayShortfall = max(m.LargestDelayShortfall, shortfall)
}

// updateState replaces the state of l's host by what next makes of the newest one,
// and returns it. next must keep Due from moving back.
func (ms *hostTable) updateState(l storage.Lease, update func(storage.HostState) storage.HostState) storage.HostState {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.state = update(m.state)
	return m.state
}

// ackLease ends a lease in the store. A host's new state goes as it is by then: of
// two visits that end together, the ack that comes last must not bring the
// older one.
func (c *Crawler) ackLease(ctx context.Context, a *storage.Ack) error {
	if a.HostState == nil {
		return c.Frontier.Ack(ctx, *a)
	}
	m := c.hostTable.entryOf(a.Lease)
	m.saveLock <- struct{}{}
	defer func() { <-m.saveLock }()
	newest := c.hostTable.stateToStore(m)
	a.HostState = &newest
	return c.Frontier.Ack(ctx, *a)
}

// entryOf returns the memo of l's host, which is in use.
func (ms *hostTable) entryOf(l storage.Lease) *hostEntry {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()]
}

// stateToStore returns the state of a host as the store keeps it.
func (ms *hostTable) stateToStore(m *hostEntry) storage.HostState {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	h := m.state
	h.EncodedStats = m.encode()
	return h
}
