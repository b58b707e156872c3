package crawler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// hostTable holds the newest state and statistics of each host in use, and of some used before. A
// lease carries them as they were when it was made; if a host has several slots, other visits have
// ended since, and their counts and consecutive failures must not be lost.
type hostTable struct {
	hostTableConfig
	crawlDelays            crawlDelays
	loggedExpiredOverrides sync.Map // hosts for which an expired override was logged

	mu    sync.Mutex // guards hosts and the entries in it, except saveLock
	hosts map[string]*hostEntry
}

type hostTableConfig struct {
	policy       politeness.Policy
	limiter      *politeness.Limiter
	frontier     *frontier.Frontier // holds origins and acks leases
	hostDueStore *HostDueStore      // nil: no other crawls
	log          *slog.Logger
	now          func() time.Time
}

// A hostEntry is the newest state of a host. Its HostStats replace state.EncodedStats.
type hostEntry struct {
	HostStats
	state              storage.HostState   // without EncodedStats
	leaseCount         int                 // leases of the host that workers have
	firstVisitTokens   map[uint64]struct{} // tokens of leases that are first visits to a page
	requeuedOverBudget bool                // see Crawler.requeueOverHostBudget

	// unchargedTimeouts counts consecutive time-outs that were not charged to the host: see
	// maxUnchargedTimeouts.
	unchargedTimeouts int
	// unchargedStaleConns counts consecutive visits that a closed kept-open connection ended: see
	// maxUnchargedStaleConns. staleConnsOfPage counts those of a page since its last answer.
	unchargedStaleConns int
	staleConnsOfPage    recent.Map[decorum.URL, int]

	// saveLock serialises the stores of this host's state, so that an older one never overwrites a
	// newer one. It is a channel of capacity 1, held while the channel is full. A store that cannot
	// write may keep it held for long, so hostTable.mu is not used.
	saveLock chan struct{}
}

// acquireHost counts a lease of l's host, and merges the state that l brings. releaseHost undoes
// it.
func (ms *hostTable) acquireHost(l storage.Lease) {
	host := l.URL.Origin().Host()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[host]
	if m == nil {
		if ms.hosts == nil {
			ms.hosts = map[string]*hostEntry{}
		}
		if len(ms.hosts) >= maxCached { // the store has the state of unused hosts
			maps.DeleteFunc(ms.hosts, func(_ string, m *hostEntry) bool { return m.leaseCount == 0 })
		}
		m = &hostEntry{state: l.HostState, firstVisitTokens: map[uint64]struct{}{}, saveLock: make(chan struct{}, 1)}
		ms.hosts[host] = m
	}
	if l.HostState.Due.After(m.state.Due) { // another process visited the host
		m.state = l.HostState
	}
	stored := DecodeHostStats(l.HostState.EncodedStats)
	switch {
	case m.leaseCount == 0 && stored.Requests > m.Requests: // the entry is new, or another process visited the host
		// LastEnd is equal after a visit of a process whose clock is behind: its Health is newer.
		if stored.LastEnd.Before(m.LastEnd) {
			stored.Health, stored.LastEnd = m.Health, m.LastEnd
		}
		m.HostStats = stored
	case stored.LastEnd.After(m.LastEnd): // also while visits of this process have not been acked
		m.Health, m.LastEnd = stored.Health, stored.LastEnd
	}
	m.leaseCount++
}

// releaseHost uncounts a lease of l's host.
func (ms *hostTable) releaseHost(l storage.Lease) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.leaseCount--
	delete(m.firstVisitTokens, l.Token)
}

// lastVisitEnd returns when the last request to l's host ended; zero if no request is known.
func (ms *hostTable) lastVisitEnd(l storage.Lease) time.Time {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()].LastEnd
}

// countVisit adds v to the statistics of its host, with the delays that robots.txt and the
// configuration required before v.
func (ms *hostTable) countVisit(v *Visit, crawlDelay, configuredDelay time.Duration) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[v.Lease.URL.Origin().Host()]
	m.countPageIfFirstVisit(v)
	if v.reachedServer() {
		m.unchargedTimeouts, m.unchargedStaleConns = 0, 0
		m.staleConnsOfPage.Delete(v.Lease.URL)
	}
	m.CrawlDelay, m.ConfiguredDelay = crawlDelay, max(configuredDelay, 0)
	m.HostTraffic.Add(v.Traffic())
	if v.WasSent() {
		m.HostStats.countRequest(v)
	}
}

// addTraffic adds t to the statistics of l's host.
func (ms *hostTable) addTraffic(l storage.Lease, t HostTraffic) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.hosts[l.URL.Origin().Host()].HostTraffic.Add(t)
}

// countRequest adds v, whose request was sent or may have been, to the statistics without HostTraffic.
func (m *HostStats) countRequest(v *Visit) {
	if v.Response == nil && !v.interrupted || isTransientStatus(v.Status()) {
		m.FailedRequests++
	}
	if v.Response != nil {
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

// recordVisitGap adds the gap before v. A negative gap is ignored: the clock was set back between
// two runs. If the host has several slots, visits overlap, and the shortfall is measured against
// the due time in the lease instead of the end of the last visit.
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

// updateState replaces the newest state of l's host by update of it, and returns the result. update
// must not move Due back.
func (ms *hostTable) updateState(l storage.Lease, update func(storage.HostState) storage.HostState) storage.HostState {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[l.URL.Origin().Host()]
	m.state = update(m.state)
	return m.state
}

// ackLease acks a lease in the store. It stores the newest state of the host, not the one that a
// was made with: if two visits end together, the later ack must not store the older state.
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

// entryOf returns the entry of l's host. The host must be in use.
func (ms *hostTable) entryOf(l storage.Lease) *hostEntry {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()]
}

// stateToStore returns the state of m with its encoded statistics.
func (ms *hostTable) stateToStore(m *hostEntry) storage.HostState {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	h := m.state
	h.EncodedStats = m.encode()
	return h
}

// updateHostAfterVisit computes when the host may be visited again after v, passes it to the
// limiter and to HostDueStore, and returns the state to ack, and whether the learned delay has
// become longer. If the Crawl-delay cannot be read, the rest is at least as long as the last one.
func (ms *hostTable) updateHostAfterVisit(ctx context.Context, v *Visit) (*storage.HostState, bool, error) {
	origin := v.URL().Origin()
	policy := ms.politenessPolicyOf(origin.Host(), v.End)
	delay, _, err := ms.crawlDelays.hostDelayAndNextAllowedTime(commitContext(ctx), origin, v.End)
	if err != nil {
		delay = v.Lease.HostState.LostVisitDelay
	}
	// A lease may bring a visit to robots.txt, which has no failed attempts.
	failedBefore := v.Lease.FailedAttempts > 0 && v.URL() == v.Lease.URL
	visit := politeness.FinishedVisit{
		Host: origin.Host(), Page: v.URL().String(), PageFailedBefore: failedBefore,
		Start: v.Start, End: v.End, Status: v.Status(), CrawlDelay: delay,
		Inconclusive: v.interrupted || v.wasNeverSent(),
	}
	bytes := 0
	if v.Response != nil {
		visit.RetryAfter = v.Response.RetryAfter(v.End)
		bytes = v.BodyLen()
	}
	// Set the rest, and store what must survive this process.
	host, learned := ms.setNextVisit(v, policy, visit, bytes)
	err = errors.Join(err, ms.hostDueStore.saveHostDueIfLongDelay(commitContext(ctx), origin.Host(), host),
		ms.hostDueStore.saveLearnedDelay(commitContext(ctx), origin.Host(), learned))
	ms.countVisit(v, delay, policy.Delay)
	// Log what slows the host down for long.
	if learned.after > learned.before {
		ms.log.Info("the host asks for fewer requests: its delay is longer now", "host", origin.Host(),
			"status", v.Status(), "delay", learned.after.Round(time.Millisecond))
	}
	if why := suspendReason(policy, visit); why != "" {
		ms.log.Warn("host suspended: "+why, "host", origin.Host(), "until", host.Due)
		err = errors.Join(err, ms.suspendHost(commitContext(ctx), origin, host.Due))
	}
	return &host, learned.after > learned.before, err
}

// A delayChange is the change of a learned delay by a visit.
type delayChange struct{ before, after time.Duration }

// setNextVisit computes the rest and the health of the host after v, which visit describes except
// for the earlier health. It passes them to the limiter, and returns the host's new state.
func (ms *hostTable) setNextVisit(v *Visit, policy politeness.Policy, visit politeness.FinishedVisit,
	bytes int) (storage.HostState, delayChange) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m := ms.hosts[v.Lease.URL.Origin().Host()]
	visit.Health = m.Health
	visit.Health.ConsecutiveFailures = m.state.ConsecutiveFailures
	// The limiter knows what the visits of other crawls have taught.
	next, before := ms.limiter.EndVisit(policy, visit, bytes)
	v.NextVisit, v.DelayReason = next, policy.DelayReason(visit, next)
	due := timecmp.Later(m.state.Due, next.Due) // a concurrent visit may require a longer rest
	m.state.Due, m.state.LostVisitDelay, m.state.Slots, m.state.ConsecutiveFailures =
		due, due.Sub(v.End), next.HostSlots, next.Health.ConsecutiveFailures
	m.Health, m.Health.ConsecutiveFailures = next.Health, 0
	return m.state, delayChange{before.Delay, next.Health.LearnedPace.Delay}
}

// learnedPaceOf returns the pace that this crawl has learned of l's host.
func (ms *hostTable) learnedPaceOf(l storage.Lease) politeness.LearnedPace {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.hosts[l.URL.Origin().Host()].Health.LearnedPace
}

// politenessPolicyOf returns the policy for host at now. It logs once that an override has expired.
func (ms *hostTable) politenessPolicyOf(host string, now time.Time) politeness.Policy {
	if o, ok := ms.policy.HostOverrides[host]; ok && o.Expired(now) {
		if _, warned := ms.loggedExpiredOverrides.LoadOrStore(host, true); !warned {
			ms.log.Warn("the override of a host has expired and is not applied", "host", host,
				"expired", o.Expires, "reason", o.Reason)
		}
	}
	return ms.policy.ForHost(host, now)
}

// logClosedWindowAndOverrides logs whether visit hours delay the crawl, which overrides are in
// force, and which have expired.
func (ms *hostTable) logClosedWindowAndOverrides(now time.Time) {
	if w := ms.policy.VisitWindow; !w.IsOpen(now) {
		ms.log.Info("outside the visit hours", "window", w, "opens", w.NextOpen(now))
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

// suspendReason returns why a host asks for a longer rest than the crawl waits for; empty if it
// does not.
func suspendReason(p politeness.Policy, v politeness.FinishedVisit) string {
	switch {
	case v.RetryAfter > p.MaxRetryAfter:
		return "its Retry-After is longer than the crawl waits"
	case v.CrawlDelay > p.MaxCrawlDelay:
		return "its Crawl-delay is longer than max_crawl_delay"
	}
	return ""
}

// suspendHost suspends the origins of o's host until a time. Holds are per origin but the rest is
// per host: if one origin were merely not due, a crawl would wait for it.
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

// markOverBudget records that a page of l's host was put off by the host's budget. It reports
// whether that already happened since the last visit to the host.
func (ms *hostTable) markOverBudget(l storage.Lease) (again bool) {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	again, m.requeuedOverBudget = m.requeuedOverBudget, true
	return again
}

// tryReservePage counts the first visit to a page as in progress, unless its host has reached
// maxPages; 0 means no limit.
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

// duplicateLinkBudget returns how many URLs may still be queued as links of pages of l's host that have
// the body of another of its pages, where maxLinks may be queued in all.
func (ms *hostTable) duplicateLinkBudget(l storage.Lease, maxLinks int) int {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return int(max(int64(maxLinks)-ms.hosts[l.URL.Origin().Host()].DuplicateLinks, 0))
}

// countDuplicateLinks counts URLs that were queued as links of such a page.
func (ms *hostTable) countDuplicateLinks(l storage.Lease, added int) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.hosts[l.URL.Origin().Host()].DuplicateLinks += int64(added)
}

// isBelowByteLimit reports whether l's host has sent fewer than limit bytes; 0 means no limit.
func (ms *hostTable) isBelowByteLimit(l storage.Lease, limit int64) bool {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return limit <= 0 || ms.hosts[l.URL.Origin().Host()].Bytes < limit
}

// countPageIfFirstVisit counts the page of v if this is its first visit. An interrupted visit will
// be repeated and is not counted. The caller holds hostTable.mu.
func (m *hostEntry) countPageIfFirstVisit(v *Visit) {
	m.requeuedOverBudget = false
	if _, first := m.firstVisitTokens[v.Lease.Token]; first && !v.interrupted {
		m.PagesRequested++
		delete(m.firstVisitTokens, v.Lease.Token)
	}
}

// minDurableDelay is the shortest rest that the crawl flushes to disk immediately, if it is longer
// than the host's last rest: if a host asks for an hour and the process is killed a moment later,
// the host still gets the hour. An unchanged rest needs no flush, because after a crash every host
// gets its last rest again.
const minDurableDelay = 10 * time.Second

// flushUnlessStalled flushes a store. While the store cannot write, or after ctx is done, it
// returns nil: the regular flush makes the data durable later.
func flushUnlessStalled(ctx context.Context, store interface{ Flush(context.Context) error }) error {
	err := store.Flush(ctx)
	if errors.Is(err, storage.ErrWriteStalled) || ctx.Err() != nil {
		return nil
	}
	return err
}

// requeueAndDelayHost requeues l, whose host must rest for delay from now on.
func (ms *hostTable) requeueAndDelayHost(l storage.Lease, delay time.Duration) leaseOutcome {
	host := ms.updateState(l, func(h storage.HostState) storage.HostState {
		h.Due, h.LostVisitDelay = timecmp.Later(h.Due, ms.now().Add(delay)), max(h.LostVisitDelay, delay)
		return h
	})
	return leaseOutcome{outcome: storage.Requeue, host: &host}
}

// useTimeoutAllowance counts a time-out of l's host that a busy machine may have caused. It reports
// whether the host is spared: the first maxUnchargedTimeouts consecutive ones are not charged.
func (ms *hostTable) useTimeoutAllowance(l storage.Lease) bool {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.unchargedTimeouts++
	return m.unchargedTimeouts <= maxUnchargedTimeouts
}

// useStaleConnAllowance counts a visit of l that a closed kept-open connection ended. It reports whether
// the host is spared: the first maxUnchargedStaleConns consecutive ones are not charged, nor are as many
// of one page while other pages are answered.
func (ms *hostTable) useStaleConnAllowance(l storage.Lease) bool {
	m := ms.entryOf(l)
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.unchargedStaleConns++
	ofPage, _ := m.staleConnsOfPage.Get(l.URL, maxStaleConnPages)
	m.staleConnsOfPage.Put(l.URL, ofPage+1, maxStaleConnPages)
	return max(m.unchargedStaleConns, ofPage+1) <= maxUnchargedStaleConns
}

// A HostDueStore keeps when hosts are due, and their learned delays, for crawls that did not make
// the last visit, across restarts and crashes. All crawls that share hosts share one HostDueStore.
// Each crawl's own store has the rests that its own visits require.
type HostDueStore struct {
	// Store keeps rests of ten seconds and more, and learned delays, as notes of the host's http
	// origin. They are durable before the visit is acked. It may be the store of the robots.txt records.
	Store interface {
		storage.Notes
		Flush(context.Context) error
	}
	// RestartedAt is when this process resumed the work of an earlier one; zero for a new start.
	// Any host may have been visited just before by a visit whose record the kill has lost, or
	// whose rest was short. So no host is visited in the first ten seconds, nor before the rest
	// that its policy now requires has passed since RestartedAt.
	RestartedAt time.Time
}

// hostDueNote names the note that says when a host is due, in RFC 3339 with nanoseconds.
const hostDueNote = "rest"

// learnedDelayNote names the note with the learned delay of a host, as time.Duration prints it.
const learnedDelayNote = "learned-delay"

// applyStoredHostDue tells limiter, before the first visit of this process to host, when visits of
// earlier processes make the host due.
func (r *HostDueStore) applyStoredHostDue(ctx context.Context, limiter *politeness.Limiter,
	host string, now time.Time) error {
	if r == nil || limiter.KnowsHost(host) {
		return nil
	}
	// After a restart, allow for visits that left no note.
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
		if err := r.applyLearnedDelay(ctx, limiter, httpOrigin, now); err != nil {
			return err
		}
	}
	limiter.PostponeHost(now, host, r.RestartedAt, due)
	return nil
}

// applyLearnedDelay passes to limiter, before the first visit of this process to a host, the delay
// that earlier processes have learned.
func (r *HostDueStore) applyLearnedDelay(ctx context.Context, limiter *politeness.Limiter,
	httpOrigin decorum.Origin, now time.Time) error {
	d, err := r.learnedDelay(ctx, httpOrigin)
	if d > 0 {
		limiter.SlowDown(now, httpOrigin.Host(), d)
	}
	return err
}

// learnedDelay returns the delay that any process has learned of a host; 0: none.
func (r *HostDueStore) learnedDelay(ctx context.Context, httpOrigin decorum.Origin) (time.Duration, error) {
	note, err := r.Store.ReadNote(ctx, httpOrigin, learnedDelayNote)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(string(note))
	if err != nil {
		return 0, nil // there is no note, or it is damaged
	}
	return max(d, 0), nil
}

// learnedDelayOfOthers returns the delay that processes of the crawl have learned of host; 0: none, or the
// crawl has one process. The state in a lease may lack it: of two visits that overlap, the one that is acked
// last stores its state, and that knows nothing of the other's answer.
func (r *HostDueStore) learnedDelayOfOthers(ctx context.Context, others Coordinator,
	host string) (time.Duration, error) {
	httpOrigin, ok := parseOrigin("http://" + host)
	if r == nil || others == nil || !ok {
		return 0, nil
	}
	return r.learnedDelay(ctx, httpOrigin)
}

// saveLearnedDelay stores a learned delay that has changed. A longer one is durable before the
// visit is acked.
func (r *HostDueStore) saveLearnedDelay(ctx context.Context, host string, learned delayChange) error {
	httpOrigin, ok := parseOrigin("http://" + host)
	if r == nil || learned.after == learned.before || !ok {
		return nil
	}
	var value []byte // deletes the note
	if learned.after > 0 {
		value = []byte(learned.after.String())
	}
	if err := r.Store.SetNote(ctx, httpOrigin, learnedDelayNote, value); err != nil || learned.after < learned.before {
		return err
	}
	return flushUnlessStalled(ctx, r.Store)
}

// saveHostDueIfLongDelay durably stores when host is due, if its rest is at least minDurableDelay.
// While the store cannot write, or after ctx is done, the regular flush makes it durable later.
func (r *HostDueStore) saveHostDueIfLongDelay(ctx context.Context, host string, state storage.HostState) error {
	httpOrigin, ok := parseOrigin("http://" + host)
	if r == nil || state.LostVisitDelay < minDurableDelay || !ok {
		return nil
	}
	if err := r.Store.SetNote(ctx, httpOrigin, hostDueNote,
		[]byte(state.Due.UTC().Format(time.RFC3339Nano))); err != nil {
		return err
	}
	return flushUnlessStalled(ctx, r.Store)
}
