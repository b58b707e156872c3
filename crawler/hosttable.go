package crawler

import (
	"context"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// memos holds the newest state of each host that is being visited, and of some
// that were, with its memo: a lease carries them as they were when it was made,
// and where a host has several slots, visits have ended since, whose strikes
// and counts must not be lost.
type memos struct {
	mu    sync.Mutex
	hosts map[string]*hostMemo
}

type hostMemo struct {
	HostMemo
	clock storage.Host        // but for the memo
	users int                 // leases in hand
	begun map[uint64]struct{} // of them, by token: first visits to a page
	full  bool                // see Crawler.setAside

	excused int // time-outs in a row that were not charged to the host: see maxExcused

	// saving is full from encoding the memo until the store has it, so that no
	// older one comes after it: a store that cannot write lets it take long.
	saving chan struct{}
}

// take begins the use of the memo of l's host.
func (ms *memos) take(l storage.Lease) {
	host := l.URL.Origin().Host()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[host]
	if m == nil {
		if ms.hosts == nil || len(ms.hosts) >= remembered {
			ms.forget()
		}
		m = &hostMemo{clock: l.Host, begun: map[uint64]struct{}{}, saving: make(chan struct{}, 1)}
		ms.hosts[host] = m
	}
	if l.Host.Due.After(m.clock.Due) { // another process was there
		m.clock = l.Host
	}
	if stored := ReadHostMemo(l.Host.Memo); m.users == 0 && stored.Requests > m.Requests {
		m.HostMemo = stored // the host is new here, or another process was there
	}
	m.users++
}

// leave ends the use of the memo of l's host.
func (ms *memos) leave(l storage.Lease) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.users--
	delete(m.begun, l.Token)
}

// forget drops the memos that nobody uses: the store has them. It requires ms.mu.
func (ms *memos) forget() {
	used := map[string]*hostMemo{}
	for host, m := range ms.hosts {
		if m.users > 0 {
			used[host] = m
		}
	}
	ms.hosts = used
}

// last returns when the last request to l's host ended, as far as it is known.
func (ms *memos) last(l storage.Lease) time.Time {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()].Last
}

// count counts a visit, before which the delays declared and configured were
// in force.
func (ms *memos) count(v *Visit, declared, configured time.Duration) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[v.Lease.URL.Origin().Host()]
	m.end(v)
	if v.reached() {
		m.excused = 0
	}
	m.Declared, m.Configured = declared, max(configured, 0)
	if v.Response != nil || !v.unsent() {
		m.HostMemo.count(v)
	}
}

func (m *HostMemo) count(v *Visit) {
	m.Requests++
	if v.Response == nil && !v.brokenOff || passing(v.Status()) {
		m.Failures++
	}
	if v.Response != nil {
		m.Bytes += int64(v.Bytes())
		if isPage(v.Lease, v.Clearance) {
			m.Pages++
			if v.withheld {
				m.Withheld++
			}
		}
		if addr := v.Response.Addr.Addr(); addr.IsValid() {
			m.Addr = addr
		}
	}
	m.Spent += max(v.End.Sub(v.Start), 0)
	m.Status = v.Status()
	m.measure(v)
	if v.End.After(m.Last) {
		m.Last = v.End
	}
}

// measure takes the gap before v. One that is negative is none: the clock was
// set back between two runs. Where visits overlap, the rest was owed when the
// lease was made, and not since the last visit ended.
func (m *HostMemo) measure(v *Visit) {
	gap := v.Start.Sub(v.before)
	if v.before.IsZero() || gap < 0 {
		return
	}
	m.Gaps.add(gap)
	short := v.Required() - gap
	if v.Lease.Host.Slots > 1 {
		short = v.Lease.Host.Due.Sub(v.Start)
	}
	m.Shortfall = max(m.Shortfall, short)
}

// advance replaces the state of l's host by what next makes of the newest one,
// and returns it. next must keep Due from moving back.
func (ms *memos) advance(l storage.Lease, next func(storage.Host) storage.Host) storage.Host {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.clock = next(m.clock)
	return m.clock
}

// ack ends a lease in the store. A host's new state goes as it is by then: of
// two visits that end together, the ack that comes last must not bring the
// older one.
func (c *Crawler) ack(ctx context.Context, a *storage.Ack) error {
	if a.Host == nil {
		return c.Frontier.Ack(ctx, *a)
	}
	m := c.memos.of(a.Lease)
	m.saving <- struct{}{}
	defer func() { <-m.saving }()
	newest := c.memos.newest(m)
	a.Host = &newest
	return c.Frontier.Ack(ctx, *a)
}

// of returns the memo of l's host, which is in use.
func (ms *memos) of(l storage.Lease) *hostMemo {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()]
}

// newest returns the state of a host as the store keeps it.
func (ms *memos) newest(m *hostMemo) storage.Host {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	h := m.clock
	h.Memo = m.encode()
	return h
}
