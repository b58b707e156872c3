package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// errNothingDue says that a host has nothing that may be asked for now.
var errNothingDue = errors.New("nothing may be asked for")

// A perHostStore keeps the state of a replay in memory, each host by itself: whose turn it
// is, the ledger says. It implements storage.Store, and of storage.Inspector what a
// crawl asks.
type perHostStore struct {
	mu          sync.Mutex
	hostIndexes map[string]int
	hostStores  []*memory.Store
	currentHost string // the host whose URLs Lease hands out
	// awaitsReferrer reports whether an entry is left for another page to be found on.
	awaitsReferrer func(*storage.Entry) bool
}

// newPerHostStore returns an empty perHostStore.
func newPerHostStore(awaitsReferrer func(*storage.Entry) bool) *perHostStore {
	return &perHostStore{hostIndexes: map[string]int{}, awaitsReferrer: awaitsReferrer}
}

// hostIndexBits are what of a token says whose host it is: tokens are unique among all.
const hostIndexBits = 24

// getOrCreateHostStore returns the store of a host, and its number.
func (s *perHostStore) getOrCreateHostStore(host string) (*memory.Store, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.hostIndexes[host]
	if !ok {
		i = len(s.hostStores)
		s.hostIndexes[host] = i
		s.hostStores = append(s.hostStores, memory.New(memory.Config{}))
	}
	return s.hostStores[i], i
}

// resolveStoreAndLease returns the store that a lease is of, and the lease as that knows it.
func (s *perHostStore) resolveStoreAndLease(l storage.Lease) (*memory.Store, storage.Lease) {
	m, _ := s.getOrCreateHostStore(l.URL.Origin().Host())
	l.Token >>= hostIndexBits
	return m, l
}

// allHostStores returns the stores of all hosts.
func (s *perHostStore) allHostStores() []*memory.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hostStores[:len(s.hostStores):len(s.hostStores)]
}

// Add implements storage.Store.
func (s *perHostStore) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	results := make([]storage.AddOutcome, len(entries))
	for i, e := range entries {
		if s.awaitsReferrer(&e) {
			results[i] = storage.Duplicate
			continue
		}
		m, _ := s.getOrCreateHostStore(e.URL.Origin().Host())
		hostResults, err := m.Add(ctx, []storage.Entry{e}, maxPerOrigin)
		if err != nil {
			return nil, err
		}
		results[i] = hostResults[0]
	}
	return results, nil
}

// forever is longer than any crawl.
const forever = 100 * 365 * 24 * time.Hour

// Lease hands out URLs of the host whose turn it is. If there is none, it returns an
// error that says when there will be.
func (s *perHostStore) Lease(ctx context.Context, now time.Time, _ time.Duration, maxLeases int) ([]storage.Lease, storage.Wait, error) {
	m, i := s.getOrCreateHostStore(s.currentHost)
	leases, next, err := m.Lease(ctx, now, forever, min(maxLeases, 1))
	for j := range leases {
		leases[j].Token = leases[j].Token<<hostIndexBits | uint64(i)
		leases[j].Expires = time.Now().Add(forever) // by the clock of the machine
	}
	switch {
	case err != nil || len(leases) > 0:
		return leases, next, err
	case next.RemainingWorkKind == storage.RemainingNone:
		return nil, next, fmt.Errorf("%w: nothing is queued", errNothingDue)
	case next.Until.After(now):
		return nil, next, fmt.Errorf("%w for another %v", errNothingDue, next.Until.Sub(now))
	}
	return nil, next, errNothingDue
}

// AdmitHostsWithinLimits implements storage.Store. It admits all hosts: which of them the
// recorded crawl admitted, its ledger says by their visits.
func (s *perHostStore) AdmitHostsWithinLimits(
	_ context.Context, hosts []storage.HostToAdmit, _ storage.HostAdmissionLimits,
) ([]storage.HostAdmissionResult, error) {
	results := make([]storage.HostAdmissionResult, len(hosts))
	for i := range results {
		results[i] = storage.HostAlreadyCounted
	}
	return results, nil
}

// AdmittedHostTotalsFor implements storage.Store.
func (s *perHostStore) AdmittedHostTotalsFor(context.Context, storage.HostToAdmit) (storage.HostAdmissionCounts, error) {
	return storage.HostAdmissionCounts{Hosts: len(s.allHostStores()), IncludesHost: true}, nil
}

// Renew implements storage.Store: leases do not run out.
func (s *perHostStore) Renew(context.Context, storage.Lease, time.Time, time.Duration) error {
	return nil
}

// MarkSent implements storage.Store.
func (s *perHostStore) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	m, l := s.resolveStoreAndLease(l)
	return m.MarkSent(ctx, l, sent)
}

// Ack implements storage.Store.
func (s *perHostStore) Ack(ctx context.Context, acks []storage.Ack) (err error) {
	for _, a := range acks {
		var m *memory.Store
		m, a.Lease = s.resolveStoreAndLease(a.Lease)
		err = errors.Join(err, m.Ack(ctx, []storage.Ack{a}))
	}
	return err
}

// Hold implements storage.Store.
func (s *perHostStore) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.Hold(ctx, o, until, suspended)
}

// RescheduleByLastmod implements storage.Store.
func (s *perHostStore) RescheduleByLastmod(ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod) (rescheduled int, err error) {
	for _, g := range lastmods {
		m, _ := s.getOrCreateHostStore(g.URL.Origin().Host())
		n, err := m.RescheduleByLastmod(ctx, now, []storage.SitemapLastmod{g})
		if rescheduled += n; err != nil {
			return rescheduled, err
		}
	}
	return rescheduled, nil
}

// UnparkMatchingURLs implements storage.Store.
func (s *perHostStore) UnparkMatchingURLs(ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool) (unparked int, err error) {
	if !o.IsZero() {
		m, _ := s.getOrCreateHostStore(o.Host())
		return m.UnparkMatchingURLs(ctx, o, shouldUnpark)
	}
	for _, m := range s.allHostStores() {
		n, err := m.UnparkMatchingURLs(ctx, o, shouldUnpark)
		if unparked += n; err != nil {
			return unparked, err
		}
	}
	return unparked, nil
}

// ReadNote implements storage.Store.
func (s *perHostStore) ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.ReadNote(ctx, o, key)
}

// SetNote implements storage.Store.
func (s *perHostStore) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.SetNote(ctx, o, key, value)
}

// Counts implements storage.Inspector.
func (s *perHostStore) Counts(ctx context.Context) (sum storage.Counts, err error) {
	for _, m := range s.allHostStores() {
		c, err := m.Counts(ctx)
		if err != nil {
			return sum, err
		}
		sum.QueuedHosts, sum.DueHosts, sum.QueuedURLs, sum.LeasedURLs = sum.QueuedHosts+c.QueuedHosts, sum.DueHosts+c.DueHosts, sum.QueuedURLs+c.QueuedURLs, sum.LeasedURLs+c.LeasedURLs
		sum.ParkedURLs, sum.SeenURLs, sum.SuspendedURLs, sum.AwaitingRevisit = sum.ParkedURLs+c.ParkedURLs, sum.SeenURLs+c.SeenURLs, sum.SuspendedURLs+c.SuspendedURLs, sum.AwaitingRevisit+c.AwaitingRevisit
	}
	return sum, nil
}

// Flush implements storage.Store.
func (s *perHostStore) Flush(context.Context) error { return nil }

// Close implements storage.Store.
func (s *perHostStore) Close() (err error) {
	for _, m := range s.allHostStores() {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Origins implements storage.Inspector, as do the methods that follow.
func (s *perHostStore) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	more := true
	for _, m := range s.allHostStores() {
		err := m.Origins(ctx, func(o storage.OriginInfo) bool {
			more = yield(o)
			return more
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// OriginNames tells of the names of all origins.
func (s *perHostStore) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return s.Origins(ctx, func(o storage.OriginInfo) bool { return yield(o.Origin) })
}

// Origin tells of one origin.
func (s *perHostStore) Origin(ctx context.Context, o decorum.Origin) (storage.OriginInfo, bool, error) {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.Origin(ctx, o)
}

// OriginURLsInState tells of the URLs of an origin.
func (s *perHostStore) OriginURLsInState(ctx context.Context, o decorum.Origin, in storage.EntryState, yield func(storage.Entry, time.Time) bool) error {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.OriginURLsInState(ctx, o, in, yield)
}

// HasSeen reports whether a URL was seen.
func (s *perHostStore) HasSeen(ctx context.Context, u decorum.URL) (bool, error) {
	m, _ := s.getOrCreateHostStore(u.Origin().Host())
	return m.HasSeen(ctx, u)
}

// SeenURLFingerprints tells what of an origin was seen.
func (s *perHostStore) SeenURLFingerprints(ctx context.Context, o decorum.Origin, yield func(uint64) bool) error {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.SeenURLFingerprints(ctx, o, yield)
}

// OriginNotes tells the notes of an origin.
func (s *perHostStore) OriginNotes(ctx context.Context, o decorum.Origin, yield func(string, []byte) bool) error {
	m, _ := s.getOrCreateHostStore(o.Host())
	return m.OriginNotes(ctx, o, yield)
}

// Import implements storage.Importer.
func (s *perHostStore) Import(ctx context.Context, dumps []storage.OriginDump) error {
	for _, p := range dumps {
		m, _ := s.getOrCreateHostStore(p.Origin.Host())
		if err := m.Import(ctx, []storage.OriginDump{p}); err != nil {
			return err
		}
	}
	return nil
}
