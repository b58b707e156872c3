package crawler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// hostTable holds the newest state of each host that is being visited, and of some
// that were, with its statistics: a lease carries them as they were when it was made,
// and where a host has several slots, visits have ended since, whose strikes
// and counts must not be lost.
type hostTable struct {
	hostTableConfig
	crawlDelays            crawlDelays
	loggedExpiredOverrides sync.Map // hosts whose override has expired, and that it was said of

	mu    sync.Mutex // guards hosts, and the entries in it but for their saveLock
	hosts map[string]*hostEntry
}

type hostTableConfig struct {
	policy       politeness.Policy
	limiter      *politeness.Limiter
	frontier     *frontier.Frontier // where origins are held, and leases acked
	hostDueStore *HostDueStore      // nil: there is none
	log          *slog.Logger
	now          func() time.Time
}

type hostEntry struct {
	HostStats
	state              storage.HostState   // but for EncodedStats
	leaseCount         int                 // leases in hand
	firstVisitTokens   map[uint64]struct{} // of them, by token: first visits to a page
	requeuedOverBudget bool                // see Crawler.requeueOverHostBudget

	unchargedTimeouts int // time-outs in a row that were not charged to the host: see maxUnchargedTimeouts

	// saveLock is full from encoding the statistics until the store has it, so that no
	// older one comes after it: a store that cannot write lets it take long.
	saveLock chan struct{}
}

// acquireHost begins the use of the entry of l's host.
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

// releaseHost ends the use of the entry of l's host.
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
func (ms *hostTable) ackLease(ctx context.Context, a *storage.Ack) error {
	if a.HostState == nil {
		return ms.frontier.Ack(ctx, *a)
	}
	m := ms.entryOf(a.Lease)
	m.saveLock <- struct{}{}
	defer func() { <-m.saveLock }()
	newest := ms.stateToStore(m)
	a.HostState = &newest
	return ms.frontier.Ack(ctx, *a)
}

// entryOf returns the entry of l's host, which is in use.
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

// updateHostAfterVisit says when the host may be visited again after v, and remembers it. If
// the delay that the host asks for cannot be read, the rest is at least as long
// as the last.
func (ms *hostTable) updateHostAfterVisit(ctx context.Context, v *Visit) (*storage.HostState, error) {
	origin := v.URL().Origin()
	policy := ms.politenessPolicyOf(origin.Host(), v.End)
	delay, _, err := ms.crawlDelays.hostDelayAndNextAllowedTime(commitContext(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.HostState.LostVisitDelay
	}
	visit := politeness.FinishedVisit{
		Host: origin.Host(), Start: v.Start, End: v.End, Status: v.Status(),
		CrawlDelay: delay,
	}
	bytes := 0
	if v.Response != nil {
		visit.RetryAfter = v.Response.RetryAfter(v.End)
		bytes = v.BodyLen()
	}
	uncharged := v.interrupted || v.wasNeverSent() // it says nothing of the server
	if uncharged {
		visit.Status = http.StatusOK
	}
	host := ms.updateState(v.Lease, func(h storage.HostState) storage.HostState {
		visit.ConsecutiveFailures = h.ConsecutiveFailures
		if uncharged {
			visit.ConsecutiveFailures++ // what a success takes off
		}
		next := policy.NextVisit(visit)
		ms.limiter.SetNextVisitAndCountBytes(origin.Host(), next, bytes)
		due := timecmp.Later(h.Due, next.Due) // another visit may have earned it a longer rest
		h.Due, h.LostVisitDelay, h.Slots, h.ConsecutiveFailures = due, due.Sub(v.End), next.HostSlots, next.ConsecutiveFailures
		return h
	})
	err = errors.Join(err, ms.hostDueStore.saveHostDueIfLongDelay(commitContext(ctx), origin.Host(), host))
	ms.countVisit(v, delay, policy.Delay)
	if why := suspendReason(policy, visit); why != "" {
		ms.log.Warn("host set aside: "+why, "host", origin.Host(), "until", host.Due)
		err = errors.Join(err, ms.suspendHost(commitContext(ctx), origin, host.Due))
	}
	return &host, err
}

// politenessPolicyOf returns the policy for host, and tells once that an override of it
// has expired.
func (ms *hostTable) politenessPolicyOf(host string, now time.Time) politeness.Policy {
	if o, ok := ms.policy.HostOverrides[host]; ok && o.Expired(now) {
		if _, warned := ms.loggedExpiredOverrides.LoadOrStore(host, true); !warned {
			ms.log.Warn("the override of a host has expired and is not applied", "host", host,
				"expired", o.Expires, "reason", o.Reason)
		}
	}
	return ms.policy.ForHost(host, now)
}

// logClosedWindowAndOverrides logs whether the crawl has to wait for its hours, which overrides are
// in force, and which no longer are.
func (ms *hostTable) logClosedWindowAndOverrides(now time.Time) {
	if w := ms.policy.VisitWindow; !w.IsOpen(now) {
		ms.log.Info("outside the hours of visits", "window", w, "opens", w.NextOpen(now))
	}
	for _, host := range slices.Sorted(maps.Keys(ms.policy.HostOverrides)) {
		policy, o := ms.politenessPolicyOf(host, now), ms.policy.HostOverrides[host]
		if o.Expired(now) {
			continue
		}
		expires := "never"
		if !o.Expires.IsZero() {
			expires = o.Expires.Format(time.RFC3339)
		}
		ms.log.Info("the policy is overridden for a host", "host", host, "delay", max(policy.Delay, 0),
			"adaptive", max(policy.AdaptiveFactor, 0), "concurrency", policy.Concurrency, "window", policy.VisitWindow,
			"reason", cmp.Or(o.Reason, "none given"), "expires", expires)
	}
}

// suspendReason says why a host asks for a longer rest than the crawl waits for;
// empty if it does not.
func suspendReason(p politeness.Policy, v politeness.FinishedVisit) string {
	switch {
	case v.RetryAfter > p.MaxRetryAfter:
		return "it asks to be left alone for longer than the crawl waits"
	case v.CrawlDelay > p.MaxCrawlDelay:
		return "its Crawl-delay is longer than max_crawl_delay"
	}
	return ""
}

// suspendHost lets nobody wait for the host of o until then. Holds are of
// origins, and the rest is the host's: while one of them were only not due, a
// crawl would wait for all.
func (ms *hostTable) suspendHost(ctx context.Context, o decorum.Origin, until time.Time) error {
	if err := ms.frontier.Hold(ctx, o, until, true); err != nil {
		return err
	}
	others, err := ms.crawlDelays.defaultPortAndNotedOrigins(ctx, o.Host())
	for _, other := range others {
		if err == nil && other != o {
			err = ms.frontier.HoldOriginIfKnown(ctx, other, until, true)
		}
	}
	return err
}

// markOverBudget notes that a page of l's host was put off, and reports whether one
// was before, with no visit since.
func (ms *hostTable) markOverBudget(l storage.Lease) (again bool) {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	again, m.requeuedOverBudget = m.requeuedOverBudget, true
	return again
}

// tryReservePage notes that the first visit to a page is under way, unless its host has
// had the most pages it may have; 0 is no limit.
func (ms *hostTable) tryReservePage(l storage.Lease, maxPages int64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	if maxPages > 0 && m.PagesRequested+int64(len(m.firstVisitTokens)) >= maxPages {
		return false
	}
	m.firstVisitTokens[l.Token] = struct{}{}
	return true
}

// isBelowByteLimit reports whether l's host has sent fewer than limit bytes; 0 means no
// limit.
func (ms *hostTable) isBelowByteLimit(l storage.Lease, limit int64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return limit <= 0 || ms.hosts[l.URL.Origin().Host()].Bytes < limit
}

// countPageIfFirstVisit counts the page of v if it was asked for the first time. A visit that was
// broken off will be made again. It requires hostTable.mu.
func (m *hostEntry) countPageIfFirstVisit(v *Visit) {
	m.requeuedOverBudget = false
	if _, first := m.firstVisitTokens[v.Lease.Token]; first && !v.interrupted {
		m.PagesRequested++
		delete(m.firstVisitTokens, v.Lease.Token)
	}
}

// minDurableDelay is how long a rest is that is made durable at once if it is longer
// than the host's last: a host that asks to be left alone for an hour is left
// alone though the crawl be killed in the next moment. After a crash every host
// has its last rest anyway, so that a rest that stays the same costs nothing.
const minDurableDelay = 10 * time.Second

// flushUnlessStalled makes all that is in a store durable. Where that cannot be for now, or the
// crawl is being halted, it goes the usual way.
func flushUnlessStalled(ctx context.Context, store interface{ Flush(context.Context) error }) error {
	err := store.Flush(ctx)
	if errors.Is(err, storage.ErrWriteStalled) || ctx.Err() != nil {
		return nil
	}
	return err
}

// requeueAndDelayHost gives back a lease whose host has to rest for so long, from now on.
func (ms *hostTable) requeueAndDelayHost(l storage.Lease, delay time.Duration) leaseOutcome {
	host := ms.updateState(l, func(h storage.HostState) storage.HostState {
		h.Due, h.LostVisitDelay = timecmp.Later(h.Due, ms.now().Add(delay)), max(h.LostVisitDelay, delay)
		return h
	})
	return leaseOutcome{outcome: storage.Requeue, host: &host}
}

// useTimeoutAllowance reports whether a time-out of l's host is not charged to it, because this
// machine is too busy.
func (ms *hostTable) useTimeoutAllowance(l storage.Lease) bool {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.unchargedTimeouts++
	return m.unchargedTimeouts <= maxUnchargedTimeouts
}

// HostDueStore keeps what visits have earned hosts for crawls that did not make them, so
// that it holds when the process is started again, after a crash too. Crawls that
// share hosts share one. Each crawl's own store has the rests of its own visits.
type HostDueStore struct {
	// Store keeps rests of ten seconds and more, in notes with the http origin of
	// the host; they are durable before the visit is acked. It may be that of the
	// robots records.
	Store interface {
		storage.Notes
		Flush(context.Context) error
	}
	// RestartedAt is when this process began to go on with what an earlier one did.
	// Any host may have been visited just before, by a visit that a kill has hidden,
	// or whose rest was short: none is visited in the first ten seconds, nor before
	// the rest that the crawl asks for now is over. Zero: it begins anew.
	RestartedAt time.Time
}

// hostDueNote is the note that says when a host is due by what its last visits have
// earned it.
const hostDueNote = "rest"

// applyStoredHostDue tells limiter, before a host is visited for the first time in this process,
// what visits of earlier ones have earned it.
func (r *HostDueStore) applyStoredHostDue(ctx context.Context, limiter *politeness.Limiter, host string, now time.Time) error {
	if r == nil || limiter.KnowsHost(host) {
		return nil
	}
	var due time.Time
	if !r.RestartedAt.IsZero() {
		due = r.RestartedAt.Add(minDurableDelay)
	}
	if httpOrigin, ok := parseOrigin("http://" + host); ok {
		note, err := r.Store.ReadNote(ctx, httpOrigin, hostDueNote)
		if err != nil {
			return err
		}
		if noted, err := time.Parse(time.RFC3339Nano, string(note)); err == nil {
			due = timecmp.Later(due, noted)
		}
	}
	limiter.PostponeHost(now, host, r.RestartedAt, due)
	return nil
}

// saveHostDueIfLongDelay makes durable what a visit has earned a host, if it is long. Where that
// cannot be for now, or the crawl is being halted, it goes the usual way.
func (r *HostDueStore) saveHostDueIfLongDelay(ctx context.Context, host string, state storage.HostState) error {
	httpOrigin, ok := parseOrigin("http://" + host)
	if r == nil || state.LostVisitDelay < minDurableDelay || !ok {
		return nil
	}
	if err := r.Store.SetNote(ctx, httpOrigin, hostDueNote, []byte(state.Due.UTC().Format(time.RFC3339Nano))); err != nil {
		return err
	}
	return flushUnlessStalled(ctx, r.Store)
}
