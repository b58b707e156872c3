package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// A model is the simplest implementation of the contract, slow and without any index, with which
// testRandomCalls compares a Store. Where the contract leaves a choice, the model follows the Store.
type model struct {
	now                    time.Time                          // latest time of a call
	sequence               int                                // counts events, to order them
	seenURLs               map[string]bool                    // by entryIdentity
	queuedURLs             []*modelURL                        // queued URLs, and pages that await their revisit
	leasedURLs             map[uint64]*modelURL               // by token
	parkedEntries          []storage.Entry                    // in the order in which they were parked
	hosts                  map[string]*modelHost              // by name
	originHolds            map[decorum.Origin]modelOriginHold // last hold of each origin
	notes                  map[string]string                  // by origin and key
	lastWasRevisitByOrigin map[decorum.Origin]bool            // the last lease of the origin was a revisit
}

// A modelURL is a URL that is queued, awaits its revisit or is leased.
type modelURL struct {
	storage.Entry
	addedSeq       int       // model.sequence when it was queued
	notBefore      time.Time // earliest time of the next lease; zero: none
	returnedSeq    int       // model.sequence when it was requeued or its lease expired; 0: neither
	awaitsRevisit  bool      // notBefore is the time of its revisit
	leaseExpiresAt time.Time // expiry of its lease
}

// A modelHost is a host in a model.
type modelHost struct {
	storage.HostState
	waitingSince time.Time // latest time from which the host may count as waiting
}

// A modelOriginHold is the arguments of a Hold.
type modelOriginHold struct {
	until     time.Time
	suspended bool
}

func newModel() *model {
	return &model{
		now:                    time.Time{},
		seenURLs:               make(map[string]bool),
		leasedURLs:             make(map[uint64]*modelURL),
		hosts:                  make(map[string]*modelHost),
		originHolds:            make(map[decorum.Origin]modelOriginHold),
		notes:                  make(map[string]string),
		lastWasRevisitByOrigin: make(map[decorum.Origin]bool),
	}
}

func (m *model) getOrCreateHost(e *storage.Entry) *modelHost {
	name := e.URL.Origin().Host()
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{}
	}
	return m.hosts[name]
}

// addEntries is Add.
func (m *model) addEntries(entries []storage.Entry, maxPerOrigin int) (results []storage.AddOutcome) {
	for _, e := range entries {
		results = append(results, m.expectedAddOutcome(&e, maxPerOrigin))
		if results[len(results)-1] != storage.Added {
			continue
		}
		if e.RobotsFor.IsZero() {
			m.seenURLs[entryIdentity(&e)] = true
		}
		m.enqueue(&modelURL{Entry: e})
	}
	return results
}

// expectedAddOutcome returns the outcome that Add must return for e.
func (m *model) expectedAddOutcome(e *storage.Entry, maxPerOrigin int) storage.AddOutcome {
	switch {
	case !e.RobotsFor.IsZero():
		return storage.Added
	case m.seenURLs[entryIdentity(e)]:
		return storage.Duplicate
	}
	count := 0
	for id := range m.seenURLs {
		if strings.HasPrefix(id, e.URL.Origin().String()+"/") {
			count++
		}
	}
	if maxPerOrigin > 0 && count >= maxPerOrigin {
		return storage.OverLimit
	}
	return storage.Added
}

// entryIdentity returns a string that is equal for two entries if one is a duplicate of the other.
func entryIdentity(e *storage.Entry) string {
	if e.Request == nil {
		return e.URL.String()
	}
	return e.URL.String() + " " + e.Request.Method + " " + string(e.Request.Body)
}

// enqueue queues w behind all URLs that were queued before.
func (m *model) enqueue(w *modelURL) {
	m.sequence++
	w.addedSeq = m.sequence
	m.queuedURLs = append(m.queuedURLs, w)
	m.getOrCreateHost(&w.Entry).waitingSince = m.now
}

// isRobotsHopForOwnOrigin reports whether w is a redirect of its origin's robots.txt, which no hold stops.
func (w *modelURL) isRobotsHopForOwnOrigin() bool { return w.RobotsFor == w.URL.Origin() }

// before reports whether w is leased before v, a URL of the same origin.
func (w *modelURL) before(v *modelURL) bool {
	switch {
	case w.awaitsRevisit && v.awaitsRevisit:
		return w.notBefore.Before(v.notBefore)
	case w.isRobotsHopForOwnOrigin() != v.isRobotsHopForOwnOrigin():
		return w.isRobotsHopForOwnOrigin()
	case w.returnedSeq != v.returnedSeq || w.returnedSeq > 0: // leases that expired together have no order
		return w.returnedSeq > v.returnedSeq
	case w.PriorityClass != v.PriorityClass && !w.isRobotsHopForOwnOrigin():
		return w.PriorityClass < v.PriorityClass
	case !w.notBefore.Equal(v.notBefore):
		return v.notBefore.IsZero() || !w.notBefore.IsZero() && w.notBefore.Before(v.notBefore)
	case w.PriorityRank != v.PriorityRank && w.notBefore.IsZero() && !w.isRobotsHopForOwnOrigin():
		return w.PriorityRank < v.PriorityRank
	}
	return w.addedSeq < v.addedSeq && w.notBefore.IsZero()
}

// availableFrom returns when w may be leased, if its host is due then.
func (m *model) availableFrom(w *modelURL) time.Time {
	at := w.notBefore
	if w.returnedSeq > 0 {
		at = time.Time{}
	}
	if hold := m.originHolds[w.URL.Origin()]; !w.isRobotsHopForOwnOrigin() && at.Before(hold.until) {
		at = hold.until
	}
	return at
}

// hostDueTimes returns when each host with URLs and a free slot may be leased.
func (m *model) hostDueTimes() map[string]time.Time {
	taken := make(map[string]int)
	for _, w := range m.leasedURLs {
		taken[w.URL.Origin().Host()]++
	}
	due := make(map[string]time.Time)
	for _, w := range m.queuedURLs {
		host := m.getOrCreateHost(&w.Entry)
		name := w.URL.Origin().Host()
		if taken[name] >= max(host.Slots, 1) {
			continue
		}
		at := timecmp.Later(host.Due, m.availableFrom(w))
		if old, ok := due[name]; !ok || at.Before(old) {
			due[name] = at
		}
	}
	return due
}

// expireLeases returns the URLs of expired leases to their queues. Leases that expire together may return
// in any order.
func (m *model) expireLeases(now time.Time) {
	m.now = timecmp.Later(m.now, now)
	m.sequence++
	for token, w := range m.leasedURLs {
		if w.leaseExpiresAt.After(now) {
			continue
		}
		delete(m.leasedURLs, token)
		host := m.getOrCreateHost(&w.Entry)
		host.Due = timecmp.Later(host.Due, w.leaseExpiresAt.Add(host.LostVisitDelay))
		host.waitingSince = m.now
		w.returnedSeq, w.awaitsRevisit = m.sequence, false
		m.queuedURLs = append(m.queuedURLs, w)
	}
}

// checkAndTakeLease returns an error if the Store must not have returned l, and otherwise records the
// lease.
func (m *model) checkAndTakeLease(l storage.Lease, now time.Time) error {
	// The host must be due, and no other host due longer.
	name := l.URL.Origin().Host()
	due := m.hostDueTimes()
	at, ok := due[name]
	if !ok || at.After(now) {
		return fmt.Errorf("%s is due at %v (%t)", name, at, ok)
	}
	for other, dueAt := range due {
		if other != name && timecmp.Later(dueAt, m.hosts[other].waitingSince).Before(at) {
			return fmt.Errorf("%s is due longer than %s", other, name)
		}
	}
	// The URL must be the next one of its origin, with the Entry and HostState of the model.
	o := l.URL.Origin()
	first := m.nextURL(l, now, false)
	if revisit := m.nextURL(l, now, true); m.decideRevisitTurn(o, first, revisit) {
		first = revisit
	}
	if first == nil {
		return fmt.Errorf("%v must not be leased", l.URL)
	}
	if diff := cmp.Diff(first.Entry, l.Entry, entryCmpOptions); diff != "" {
		return fmt.Errorf("not the next of its origin (-want +got):\n%s", diff)
	}
	if host := m.hosts[name]; !equalHostStates(host.HostState, l.HostState) && host.Due.After(startTime) {
		return fmt.Errorf("host %+v, want %+v", l.HostState, host.HostState)
	}
	m.queuedURLs = slices.DeleteFunc(m.queuedURLs, func(w *modelURL) bool { return w == first })
	m.hosts[name].waitingSince = now
	first.leaseExpiresAt = l.Expires
	m.leasedURLs[l.Token] = first
	return nil
}

// nextURL returns the next URL of the origin of l, or its next revisit. If several may be next, it
// returns the one of l.
func (m *model) nextURL(l storage.Lease, now time.Time, awaitsRevisit bool) (first *modelURL) {
	for _, w := range m.queuedURLs {
		if w.URL.Origin() != l.URL.Origin() || w.awaitsRevisit != awaitsRevisit || m.availableFrom(w).After(now) {
			continue
		}
		if first == nil || w.before(first) || !first.before(w) && w.URL == l.URL &&
			cmp.Equal(w.Entry, l.Entry, entryCmpOptions) {
			first = w
		}
	}
	return first
}

// decideRevisitTurn reports whether the next lease of the origin must be revisit, and not first, and
// records that. Either may be nil.
func (m *model) decideRevisitTurn(o decorum.Origin, first, revisit *modelURL) bool {
	revisitFirst := first == nil || !first.isRobotsHopForOwnOrigin() && first.returnedSeq == 0 &&
		first.PriorityClass >= storage.ClassNormal && !m.lastWasRevisitByOrigin[o]
	m.lastWasRevisitByOrigin[o] = revisit != nil && revisitFirst
	return m.lastWasRevisitByOrigin[o]
}

// expectedWait returns the Wait that Lease must return if it returns no lease.
func (m *model) expectedWait() storage.Wait {
	if len(m.queuedURLs)+len(m.leasedURLs) == 0 {
		return storage.Wait{}
	}
	// If all URLs are suspended or await a revisit, Until is the end of a hold or the first revisit.
	awaiting, revisit := m.revisitCountAndFirstDue()
	n, end := m.countSuspendedURLs()
	if n+awaiting == len(m.queuedURLs) && len(m.leasedURLs) == 0 && (awaiting == 0 || revisit.After(m.now)) {
		if n > 0 {
			return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: end}
		}
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: revisit}
	}
	// Otherwise it is the first due time or expiry.
	var at time.Time
	for _, due := range m.hostDueTimes() {
		at = timecmp.EarlierOfSet(at, timecmp.Later(due, startTime))
	}
	for _, w := range m.leasedURLs {
		at = timecmp.EarlierOfSet(at, w.leaseExpiresAt)
	}
	return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at}
}

// revisitCountAndFirstDue returns the number of pages that await their revisit, and when the first of
// them is due. A page under a suspended hold is due at its end at the earliest.
func (m *model) revisitCountAndFirstDue() (n int, first time.Time) {
	for _, w := range m.queuedURLs {
		if !w.awaitsRevisit {
			continue
		}
		at := w.notBefore
		if hold := m.originHolds[w.URL.Origin()]; hold.suspended {
			at = timecmp.Later(at, hold.until)
		}
		n++
		first = timecmp.EarlierOfSet(first, at)
	}
	return n, first
}

// countSuspendedURLs returns the number of queued URLs under a suspended hold, and when the first of these
// holds ends.
func (m *model) countSuspendedURLs() (n int, end time.Time) {
	for _, w := range m.queuedURLs {
		if hold := m.originHolds[w.URL.Origin()]; hold.suspended && hold.until.After(m.now) &&
			!w.isRobotsHopForOwnOrigin() && !w.awaitsRevisit {
			n++
			end = timecmp.EarlierOfSet(end, hold.until)
		}
	}
	return n, end
}

// applyAck is Ack for one lease. It returns false if the lease is stale.
func (m *model) applyAck(a storage.Ack) bool {
	w := m.leasedURLs[a.Lease.Token]
	if w == nil {
		return false
	}
	delete(m.leasedURLs, a.Lease.Token)
	// The URL keeps the Entry of the ack, except for Sent.
	e := a.Lease.Entry
	e.Sent = w.Sent
	switch a.Outcome {
	case storage.Requeue:
		m.enqueue(&modelURL{Entry: e, returnedSeq: m.sequence + 1})
	case storage.RetryAt:
		m.enqueue(&modelURL{Entry: e, notBefore: a.NotBefore})
	case storage.RevisitAt:
		if e.RobotsFor.IsZero() {
			m.enqueue(&modelURL{Entry: e, notBefore: a.NotBefore, awaitsRevisit: true})
		}
	case storage.Park:
		m.parkedEntries = append(m.parkedEntries, e)
	}
	// Due of the host never moves back.
	host := m.getOrCreateHost(&e)
	host.waitingSince = m.now
	if a.HostState != nil {
		due := host.Due
		host.HostState = *a.HostState
		host.Due = timecmp.Later(due, a.HostState.Due)
	}
	return true
}

// rescheduleIfModified is RescheduleByLastmod for one page, and returns 1 if the page was rescheduled.
func (m *model) rescheduleIfModified(now time.Time, g storage.SitemapLastmod) int {
	for _, w := range m.queuedURLs {
		if !w.awaitsRevisit || w.URL != g.URL || w.Request != nil {
			continue
		}
		var history storage.VisitHistorySummary
		if w.VisitHistorySummary != nil {
			history = *w.VisitHistorySummary
		}
		if !history.VisitedAt.Before(g.Modified) {
			return 0
		}
		// The page is due now, unless it was due earlier, behind others of the same time.
		history.SitemapLastmod = g.Modified
		w.VisitHistorySummary = &history
		if now.Before(w.notBefore) {
			w.notBefore = now
		}
		m.sequence++
		w.addedSeq = m.sequence
		return 1
	}
	return 0
}

// unpark is UnparkMatchingURLs.
func (m *model) unpark(o decorum.Origin, shouldUnpark func(storage.Entry) bool) (unparked int) {
	parked := m.parkedEntries
	m.parkedEntries = nil
	for _, e := range parked {
		if (o.IsZero() || e.URL.Origin() == o) && shouldUnpark(e) {
			m.enqueue(&modelURL{Entry: e})
			unparked++
		} else {
			m.parkedEntries = append(m.parkedEntries, e)
		}
	}
	return unparked
}

// reopen is Close and a new open: leased URLs return to their former places.
func (m *model) reopen() {
	for token, w := range m.leasedURLs {
		delete(m.leasedURLs, token)
		m.queuedURLs = append(m.queuedURLs, w)
		m.getOrCreateHost(&w.Entry).waitingSince = m.now
	}
}

// counts is Counts.
func (m *model) counts() storage.Counts {
	hosts := make(map[string]bool)
	awaiting := 0
	for _, w := range m.queuedURLs {
		if w.awaitsRevisit {
			awaiting++ // such a page does not make its host a queued one
			continue
		}
		hosts[w.URL.Origin().Host()] = true
	}
	for _, w := range m.leasedURLs {
		hosts[w.URL.Origin().Host()] = true
	}
	due := 0
	for _, at := range m.hostDueTimes() {
		if !at.After(m.now) {
			due++
		}
	}
	suspended, _ := m.countSuspendedURLs()
	return storage.Counts{
		QueuedHosts: len(hosts), DueHosts: due, QueuedURLs: len(m.queuedURLs) - awaiting, AwaitingRevisit: awaiting,
		LeasedURLs: len(m.leasedURLs),
		ParkedURLs: len(m.parkedEntries), SeenURLs: len(m.seenURLs), SuspendedURLs: suspended,
	}
}
