package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A model is a Store as it would be explained: slow, and with nothing to get
// wrong. Where the contract leaves a choice, it takes the Store's.
type model struct {
	now     time.Time       // the latest it was told
	clock   int             // numbers what happens
	seen    map[string]bool // by identity
	waiting []*waiter
	out     map[uint64]*waiter
	parked  []storage.Entry
	hosts   map[string]*modelHost
	holds   map[decorum.Origin]modelHold
	notes   map[string]string
	rested  map[decorum.Origin]bool // the last of its turns was a revisit
}

// A waiter is a URL that is queued, or out.
type waiter struct {
	storage.Entry
	added   int       // when it was queued
	at      time.Time // not before; zero if it was not put off
	back    int       // when it was given back; 0 if it was not
	rests   bool      // until its revisit
	expires time.Time // of its lease
}

type modelHost struct {
	storage.HostState
	touched time.Time // it waits since then at the latest
}

type modelHold struct {
	until   time.Time
	dormant bool
}

func newModel() *model {
	return &model{
		now:    time.Time{},
		seen:   make(map[string]bool),
		out:    make(map[uint64]*waiter),
		hosts:  make(map[string]*modelHost),
		holds:  make(map[decorum.Origin]modelHold),
		notes:  make(map[string]string),
		rested: make(map[decorum.Origin]bool),
	}
}

func (m *model) host(e *storage.Entry) *modelHost {
	name := e.URL.Origin().Host()
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{}
	}
	return m.hosts[name]
}

func (m *model) add(entries []storage.Entry, maxPerOrigin int) (fates []storage.AddResult) {
	for _, e := range entries {
		fates = append(fates, m.fate(&e, maxPerOrigin))
		if fates[len(fates)-1] != storage.Added {
			continue
		}
		if e.RobotsFor.IsZero() {
			m.seen[identity(&e)] = true
		}
		m.queue(&waiter{Entry: e})
	}
	return fates
}

func (m *model) fate(e *storage.Entry, maxPerOrigin int) storage.AddResult {
	switch {
	case !e.RobotsFor.IsZero():
		return storage.Added
	case m.seen[identity(e)]:
		return storage.Duplicate
	}
	there := 0
	for id := range m.seen {
		if strings.HasPrefix(id, e.URL.Origin().String()+"/") {
			there++
		}
	}
	if maxPerOrigin > 0 && there >= maxPerOrigin {
		return storage.OverLimit
	}
	return storage.Added
}

// identity returns what two entries have in common if they are the same.
func identity(e *storage.Entry) string {
	if e.Request == nil {
		return e.URL.String()
	}
	return e.URL.String() + " " + e.Request.Method + " " + string(e.Request.Body)
}

func (m *model) queue(w *waiter) {
	m.clock++
	w.added = m.clock
	m.waiting = append(m.waiting, w)
	m.host(&w.Entry).touched = m.now
}

// isHop reports whether no hold of its origin stops w.
func (w *waiter) isHop() bool { return w.RobotsFor == w.URL.Origin() }

// before is the order within an origin.
func (w *waiter) before(v *waiter) bool {
	switch {
	case w.rests && v.rests:
		return w.at.Before(v.at)
	case w.isHop() != v.isHop():
		return w.isHop()
	case w.back != v.back || w.back > 0: // what ran out together has no order
		return w.back > v.back
	case w.Class != v.Class && !w.isHop():
		return w.Class < v.Class
	case !w.at.Equal(v.at):
		return v.at.IsZero() || !w.at.IsZero() && w.at.Before(v.at)
	case w.Rank != v.Rank && w.at.IsZero() && !w.isHop():
		return w.Rank < v.Rank
	}
	return w.added < v.added && w.at.IsZero()
}

// from returns when w can be handed out, were its host due.
func (m *model) from(w *waiter) time.Time {
	at := w.at
	if w.back > 0 {
		at = time.Time{}
	}
	if hold := m.holds[w.URL.Origin()]; !w.isHop() && at.Before(hold.until) {
		at = hold.until
	}
	return at
}

// due returns when each host with URLs and a slot free can be given a lease.
func (m *model) due() map[string]time.Time {
	taken := make(map[string]int)
	for _, w := range m.out {
		taken[w.URL.Origin().Host()]++
	}
	due := make(map[string]time.Time)
	for _, w := range m.waiting {
		host := m.host(&w.Entry)
		name := w.URL.Origin().Host()
		if taken[name] >= max(host.Slots, 1) {
			continue
		}
		at := latest(host.Due, m.from(w))
		if old, ok := due[name]; !ok || at.Before(old) {
			due[name] = at
		}
	}
	return due
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// expire gives back what ran out. What runs out together comes back in any order.
func (m *model) expire(now time.Time) {
	m.now = latest(m.now, now)
	m.clock++
	for token, w := range m.out {
		if w.expires.After(now) {
			continue
		}
		delete(m.out, token)
		host := m.host(&w.Entry)
		host.Due = latest(host.Due, w.expires.Add(host.Delay))
		host.touched = m.now
		w.back, w.rests = m.clock, false
		m.waiting = append(m.waiting, w)
	}
}

// lease checks one lease the Store gave, and takes it.
func (m *model) lease(l storage.Lease, now time.Time) error {
	name := l.URL.Origin().Host()
	due := m.due()
	at, ok := due[name]
	if !ok || at.After(now) {
		return fmt.Errorf("%s is due at %v (%t)", name, at, ok)
	}
	for other, since := range due {
		if other != name && latest(since, m.hosts[other].touched).Before(at) {
			return fmt.Errorf("%s is due longer than %s", other, name)
		}
	}
	o := l.URL.Origin()
	first := m.first(l, now, false)
	if rest := m.first(l, now, true); m.turn(o, first, rest) {
		first = rest
	}
	if first == nil {
		return fmt.Errorf("%v is not to be handed out", l.URL)
	}
	if diff := cmp.Diff(first.Entry, l.Entry, exact); diff != "" {
		return fmt.Errorf("not the next of its origin (-want +got):\n%s", diff)
	}
	if host := m.hosts[name]; !sameHost(host.HostState, l.Host) && host.Due.After(start) {
		return fmt.Errorf("host %+v, want %+v", l.Host, host.HostState)
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(w *waiter) bool { return w == first })
	m.hosts[name].touched = now
	first.expires = l.Expires
	m.out[l.Token] = first
	return nil
}

// first returns which URL goes next of the origin of l, or which resting page:
// l itself if it is among them.
func (m *model) first(l storage.Lease, now time.Time, rests bool) (first *waiter) {
	for _, w := range m.waiting {
		if w.URL.Origin() != l.URL.Origin() || w.rests != rests || m.from(w).After(now) {
			continue
		}
		if first == nil || w.before(first) || !first.before(w) && w.URL == l.URL && cmp.Equal(w.Entry, l.Entry, exact) {
			first = w
		}
	}
	return first
}

// turn reports whether it is the turn of the resting page.
func (m *model) turn(o decorum.Origin, first, rest *waiter) bool {
	low := first == nil || !first.isHop() && first.back == 0 && first.Class >= storage.ClassNormal && !m.rested[o]
	m.rested[o] = rest != nil && low
	return m.rested[o]
}

// next returns what is left, after the leases were taken.
func (m *model) next() storage.Wait {
	if len(m.waiting)+len(m.out) == 0 {
		return storage.Wait{}
	}
	resting, revisit := m.resting()
	n, end := m.dormant()
	if n+resting == len(m.waiting) && len(m.out) == 0 && (resting == 0 || revisit.After(m.now)) {
		if n > 0 {
			return storage.Wait{RemainingWork: storage.RemainingSuspended, Until: end}
		}
		return storage.Wait{RemainingWork: storage.RemainingRevisits, Until: revisit}
	}
	var at time.Time
	for _, due := range m.due() {
		at = earliest(at, latest(due, start))
	}
	for _, w := range m.out {
		at = earliest(at, w.expires)
	}
	return storage.Wait{RemainingWork: storage.RemainingPending, Until: at}
}

// earliest returns the earlier of both, b if a is zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// resting counts the pages that wait for their revisit, and returns when the
// first is due, as far as a crawl should wait for it.
func (m *model) resting() (n int, first time.Time) {
	for _, w := range m.waiting {
		if !w.rests {
			continue
		}
		at := w.at
		if hold := m.holds[w.URL.Origin()]; hold.dormant {
			at = latest(at, hold.until)
		}
		n++
		first = earliest(first, at)
	}
	return n, first
}

// dormant counts what waits under a dormant hold, and returns when the first ends.
func (m *model) dormant() (n int, end time.Time) {
	for _, w := range m.waiting {
		if hold := m.holds[w.URL.Origin()]; hold.dormant && hold.until.After(m.now) && !w.isHop() && !w.rests {
			n++
			end = earliest(end, hold.until)
		}
	}
	return n, end
}

// ack ends a lease; false if it is stale.
func (m *model) ack(a storage.Ack) bool {
	w := m.out[a.Lease.Token]
	if w == nil {
		return false
	}
	delete(m.out, a.Lease.Token)
	e := a.Lease.Entry
	e.Sent = w.Sent
	switch a.Outcome {
	case storage.Requeue:
		m.queue(&waiter{Entry: e, back: m.clock + 1})
	case storage.RetryAt:
		m.queue(&waiter{Entry: e, at: a.NotBefore})
	case storage.RevisitAt:
		if e.RobotsFor.IsZero() {
			m.queue(&waiter{Entry: e, at: a.NotBefore, rests: true})
		}
	case storage.Park:
		m.parked = append(m.parked, e)
	}
	host := m.host(&e)
	host.touched = m.now
	if a.Host != nil {
		due := host.Due
		host.HostState = *a.Host
		host.Due = latest(due, a.Host.Due)
	}
	return true
}

func (m *model) recall(now time.Time, g storage.SitemapLastmod) int {
	for _, w := range m.waiting {
		if !w.rests || w.URL != g.URL || w.Request != nil {
			continue
		}
		var page storage.VisitHistory
		if w.History != nil {
			page = *w.History
		}
		if !page.VisitedAt.Before(g.Modified) {
			return 0
		}
		page.SitemapLastmod = g.Modified
		w.History = &page
		if now.Before(w.at) {
			w.at = now
		}
		m.clock++
		w.added = m.clock
		return 1
	}
	return 0
}

func (m *model) revive(o decorum.Origin, shouldUnpark func(storage.Entry) bool) (revived int) {
	parked := m.parked
	m.parked = nil
	for _, e := range parked {
		if e.URL.Origin() == o && shouldUnpark(e) {
			m.queue(&waiter{Entry: e})
			revived++
		} else {
			m.parked = append(m.parked, e)
		}
	}
	return revived
}

// reopen is what a clean stop does to leases: they go back to where they were.
func (m *model) reopen() {
	for token, w := range m.out {
		delete(m.out, token)
		m.waiting = append(m.waiting, w)
		m.host(&w.Entry).touched = m.now
	}
}

func (m *model) counts() storage.Counts {
	hosts := make(map[string]bool)
	resting := 0
	for _, w := range m.waiting {
		if w.rests {
			resting++
			continue
		}
		hosts[w.URL.Origin().Host()] = true
	}
	for _, w := range m.out {
		hosts[w.URL.Origin().Host()] = true
	}
	due := 0
	for _, at := range m.due() {
		if !at.After(m.now) {
			due++
		}
	}
	dormant, _ := m.dormant()
	return storage.Counts{
		Hosts: len(hosts), DueHosts: due, QueuedURLs: len(m.waiting) - resting, AwaitingRevisit: resting, LeasedURLs: len(m.out),
		ParkedURLs: len(m.parked), SeenURLs: len(m.seen), SuspendedURLs: dormant,
	}
}
