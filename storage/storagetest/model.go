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

// A model is a Store as it would be explained: slow, and with nothing to get
// wrong. Where the contract leaves a choice, it takes the Store's.
type model struct {
	now                    time.Time       // the latest it was told
	sequence               int             // numbers what happens
	seenURLs               map[string]bool // by identity
	queuedURLs             []*modelURL
	leasedURLs             map[uint64]*modelURL
	parkedEntries          []storage.Entry
	hosts                  map[string]*modelHost
	originHolds            map[decorum.Origin]modelOriginHold
	notes                  map[string]string
	lastWasRevisitByOrigin map[decorum.Origin]bool // the last of its turns was a revisit
}

// A modelURL is a URL that is queued, or out.
type modelURL struct {
	storage.Entry
	addedSeq       int       // when it was queued
	notBefore      time.Time // not before; zero if it was not put off
	returnedSeq    int       // when it was given back; 0 if it was not
	awaitsRevisit  bool      // until its revisit
	leaseExpiresAt time.Time // of its lease
}

type modelHost struct {
	storage.HostState
	waitingSince time.Time // it waits since then at the latest
}

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

// entryIdentity returns what two entries have in common if they are the same.
func entryIdentity(e *storage.Entry) string {
	if e.Request == nil {
		return e.URL.String()
	}
	return e.URL.String() + " " + e.Request.Method + " " + string(e.Request.Body)
}

func (m *model) enqueue(w *modelURL) {
	m.sequence++
	w.addedSeq = m.sequence
	m.queuedURLs = append(m.queuedURLs, w)
	m.getOrCreateHost(&w.Entry).waitingSince = m.now
}

// isRobotsHopForOwnOrigin reports whether no hold of its origin stops w.
func (w *modelURL) isRobotsHopForOwnOrigin() bool { return w.RobotsFor == w.URL.Origin() }

// before is the order within an origin.
func (w *modelURL) before(v *modelURL) bool {
	switch {
	case w.awaitsRevisit && v.awaitsRevisit:
		return w.notBefore.Before(v.notBefore)
	case w.isRobotsHopForOwnOrigin() != v.isRobotsHopForOwnOrigin():
		return w.isRobotsHopForOwnOrigin()
	case w.returnedSeq != v.returnedSeq || w.returnedSeq > 0: // what ran out together has no order
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

// availableFrom returns when w can be handed out, were its host due.
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

// hostDueTimes returns when each host with URLs and a slot free can be given a lease.
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

// expireLeases gives back what ran out. What runs out together comes back in any order.
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

// checkAndTakeLease checks one lease the Store gave, and takes it.
func (m *model) checkAndTakeLease(l storage.Lease, now time.Time) error {
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
	o := l.URL.Origin()
	first := m.nextURL(l, now, false)
	if revisit := m.nextURL(l, now, true); m.decideRevisitTurn(o, first, revisit) {
		first = revisit
	}
	if first == nil {
		return fmt.Errorf("%v is not to be handed out", l.URL)
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

// nextURL returns which URL goes next of the origin of l, or which resting page:
// l itself if it is among them.
func (m *model) nextURL(l storage.Lease, now time.Time, awaitsRevisit bool) (first *modelURL) {
	for _, w := range m.queuedURLs {
		if w.URL.Origin() != l.URL.Origin() || w.awaitsRevisit != awaitsRevisit || m.availableFrom(w).After(now) {
			continue
		}
		if first == nil || w.before(first) || !first.before(w) && w.URL == l.URL && cmp.Equal(w.Entry, l.Entry, entryCmpOptions) {
			first = w
		}
	}
	return first
}

// decideRevisitTurn reports whether it is the turn of the resting page.
func (m *model) decideRevisitTurn(o decorum.Origin, first, revisit *modelURL) bool {
	revisitFirst := first == nil || !first.isRobotsHopForOwnOrigin() && first.returnedSeq == 0 && first.PriorityClass >= storage.ClassNormal && !m.lastWasRevisitByOrigin[o]
	m.lastWasRevisitByOrigin[o] = revisit != nil && revisitFirst
	return m.lastWasRevisitByOrigin[o]
}

// expectedWait returns what is left, after the leases were taken.
func (m *model) expectedWait() storage.Wait {
	if len(m.queuedURLs)+len(m.leasedURLs) == 0 {
		return storage.Wait{}
	}
	awaiting, revisit := m.revisitCountAndFirstDue()
	n, end := m.countSuspendedURLs()
	if n+awaiting == len(m.queuedURLs) && len(m.leasedURLs) == 0 && (awaiting == 0 || revisit.After(m.now)) {
		if n > 0 {
			return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: end}
		}
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: revisit}
	}
	var at time.Time
	for _, due := range m.hostDueTimes() {
		at = timecmp.EarlierOfSet(at, timecmp.Later(due, startTime))
	}
	for _, w := range m.leasedURLs {
		at = timecmp.EarlierOfSet(at, w.leaseExpiresAt)
	}
	return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at}
}

// revisitCountAndFirstDue counts the pages that wait for their revisit, and returns when the
// first is due, as far as a crawl should wait for it.
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

// countSuspendedURLs counts what waits under a dormant hold, and returns when the first ends.
func (m *model) countSuspendedURLs() (n int, end time.Time) {
	for _, w := range m.queuedURLs {
		if hold := m.originHolds[w.URL.Origin()]; hold.suspended && hold.until.After(m.now) && !w.isRobotsHopForOwnOrigin() && !w.awaitsRevisit {
			n++
			end = timecmp.EarlierOfSet(end, hold.until)
		}
	}
	return n, end
}

// applyAck ends a lease; false if it is stale.
func (m *model) applyAck(a storage.Ack) bool {
	w := m.leasedURLs[a.Lease.Token]
	if w == nil {
		return false
	}
	delete(m.leasedURLs, a.Lease.Token)
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
	host := m.getOrCreateHost(&e)
	host.waitingSince = m.now
	if a.HostState != nil {
		due := host.Due
		host.HostState = *a.HostState
		host.Due = timecmp.Later(due, a.HostState.Due)
	}
	return true
}

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

// unpark is UnparkMatchingURLs: the zero Origin stands for every origin.
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

// reopen is what a clean stop does to leases: they go back to where they were.
func (m *model) reopen() {
	for token, w := range m.leasedURLs {
		delete(m.leasedURLs, token)
		m.queuedURLs = append(m.queuedURLs, w)
		m.getOrCreateHost(&w.Entry).waitingSince = m.now
	}
}

func (m *model) counts() storage.Counts {
	hosts := make(map[string]bool)
	awaiting := 0
	for _, w := range m.queuedURLs {
		if w.awaitsRevisit {
			awaiting++
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
		QueuedHosts: len(hosts), DueHosts: due, QueuedURLs: len(m.queuedURLs) - awaiting, AwaitingRevisit: awaiting, LeasedURLs: len(m.leasedURLs),
		ParkedURLs: len(m.parkedEntries), SeenURLs: len(m.seenURLs), SuspendedURLs: suspended,
	}
}
