package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Config has the settings of a Store.
type Config struct {
	// MaxURLs is the largest number of entries in the seen set. An Add or Import that would exceed
	// it changes nothing and returns storage.ErrFull. 0 means 10,000,000.
	MaxURLs int
}

// A Store is a storage.Store in memory. Use New. All methods may be called concurrently.
type Store struct {
	maxURLs int

	// mu guards closed, schedule, hosts, origins, seenURLs, leases, parkedCount, admittedHosts and
	// lastLeaseToken, and everything that they lead to.
	mu             sync.Mutex
	closed         bool
	schedule       schedule.Schedule[*originQueue]
	hosts          map[string]*memoryHost           // by name
	origins        map[decorum.Origin]*memoryOrigin // every origin that the Store was given
	seenURLs       map[seenKey]*queuedEntry         // the seen set; value nil unless awaiting a revisit
	leases         map[uint64]*memoryLease          // by token
	parkedCount    int                              // parked URLs of all origins
	admittedHosts  admittedHosts
	lastLeaseToken uint64 // token of the latest lease
}

// A memoryHost is a host with its clock and its place in the schedule.
type memoryHost = schedule.Host[*originQueue]

// A memoryOrigin is an origin with its queue, its parked URLs and its notes.
type memoryOrigin struct {
	schedule.Origin[*originQueue]
	parkedEntries []storage.Entry   // in the order in which they were parked
	notes         map[string][]byte // by key
	seenCount     int               // entries of the origin in the seen set
}

// A memoryLease is a URL that is leased.
type memoryLease struct {
	*schedule.Lease[*originQueue]
	origin *memoryOrigin
	entry  storage.Entry
}

// A seenKey identifies an entry in the seen set.
type seenKey struct {
	origin      decorum.Origin
	fingerprint uint64 // storage.Entry.RequestFingerprint
}

// seenKeyOf returns the key of e in the seen set.
func seenKeyOf(e *storage.Entry) seenKey { return seenKey{e.URL.Origin(), e.RequestFingerprint()} }

var _ storage.Store = (*Store)(nil)

// New returns an empty Store.
func New(cfg Config) *Store {
	if cfg.MaxURLs <= 0 {
		cfg.MaxURLs = 10_000_000
	}
	return &Store{
		maxURLs:  cfg.MaxURLs,
		hosts:    make(map[string]*memoryHost),
		origins:  make(map[decorum.Origin]*memoryOrigin),
		seenURLs: make(map[seenKey]*queuedEntry),
		leases:   make(map[uint64]*memoryLease),

		admittedHosts: admittedHosts{hosts: make(map[string]struct{}), hostCountByDomain: make(map[string]int)},
	}
}

// lockIfOpen locks m.mu for a call. It returns an error, without the lock, if ctx is done or m is
// closed.
func (m *Store) lockIfOpen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return storage.ErrClosed
	}
	return nil
}

// getOrCreateOrigin returns the state of o, which it creates if m does not have it.
func (m *Store) getOrCreateOrigin(o decorum.Origin) *memoryOrigin {
	if origin := m.origins[o]; origin != nil {
		return origin
	}
	host := m.hosts[o.Host()]
	if host == nil {
		host = &memoryHost{}
		m.hosts[o.Host()] = host
	}
	origin := &memoryOrigin{}
	origin.Queue, origin.Host = &originQueue{}, host
	m.origins[o] = origin
	return origin
}

// Add implements storage.Store.
func (m *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if !m.hasCapacity(entries) {
		return nil, fmt.Errorf("add: %d URLs are kept in memory already: %w", len(m.seenURLs), storage.ErrFull)
	}
	results := make([]storage.AddOutcome, len(entries))
	for i, e := range entries {
		results[i] = m.addEntryIfNew(e, maxPerOrigin)
	}
	return results, nil
}

// addEntryIfNew queues e unless it is a duplicate or its origin has reached maxPerOrigin. A redirect of
// a robots.txt (RobotsFor set) it always queues.
func (m *Store) addEntryIfNew(e storage.Entry, maxPerOrigin int) storage.AddOutcome {
	o := m.getOrCreateOrigin(e.URL.Origin())
	if e.RobotsFor.IsZero() {
		if _, seen := m.seenURLs[seenKeyOf(&e)]; !seen && maxPerOrigin > 0 && o.seenCount >= maxPerOrigin {
			return storage.OverLimit
		}
		if !m.markSeen(o, seenKeyOf(&e)) {
			return storage.Duplicate
		}
	}
	o.Queue.addEntry(schedule.CloneEntry(e))
	m.schedule.UpdateOrigin(&o.Origin)
	return storage.Added
}

// markSeen adds an entry of o to the seen set. It returns false if the set had it.
func (m *Store) markSeen(o *memoryOrigin, k seenKey) bool {
	if _, seen := m.seenURLs[k]; seen {
		return false
	}
	m.seenURLs[k] = nil
	o.seenCount++
	return true
}

// hasCapacity reports whether the seen set stays within MaxURLs if the entries are added.
func (m *Store) hasCapacity(entries []storage.Entry) bool {
	free := m.maxURLs - len(m.seenURLs)
	if len(entries) <= free {
		return true
	}
	// Count the new entries only, each once.
	newKeys := make(map[seenKey]struct{})
	for _, e := range entries {
		if _, seen := m.seenURLs[seenKeyOf(&e)]; !seen && e.RobotsFor.IsZero() {
			newKeys[seenKeyOf(&e)] = struct{}{}
		}
	}
	return len(newKeys) <= free
}

// Lease implements storage.Store.
func (m *Store) Lease(ctx context.Context, now time.Time, ttl time.Duration,
	max int) ([]storage.Lease, storage.Wait, error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, storage.Wait{}, err
	}
	defer m.mu.Unlock()
	// Return expired leases first: their URLs may be leased again below.
	m.schedule.Advance(now)
	m.expireLeases(now)
	var leases []storage.Lease
	for len(leases) < max {
		origin := m.schedule.NextOrigin(now)
		if origin == nil {
			break
		}
		l, err := m.issueLease(origin, now, now.Add(ttl))
		if err != nil {
			return leases, storage.Wait{}, err
		}
		leases = append(leases, l)
	}
	return leases, m.schedule.Wait(), nil
}

// LeaseFromHost leases the next URL of one host, whichever host Lease would choose. It returns at most
// one lease. Without a lease, due is when the next URL of the host is due; it is zero if the host can
// lease no URL before one of its leases ends or a URL is added.
func (m *Store) LeaseFromHost(
	ctx context.Context, host string, now time.Time, ttl time.Duration,
) (leases []storage.Lease, due time.Time, err error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, time.Time{}, err
	}
	defer m.mu.Unlock()
	m.schedule.Advance(now)
	m.expireLeases(now)
	// Look at the one host: without URLs or a free slot it has no due origin.
	h := m.hosts[host]
	if h == nil {
		return nil, time.Time{}, nil
	}
	origin, due := m.schedule.NextOriginOfHost(h)
	if origin == nil || due.After(now) {
		return nil, due, nil
	}
	l, err := m.issueLease(origin, now, now.Add(ttl))
	if err != nil {
		return nil, due, err
	}
	return []storage.Lease{l}, due, nil
}

// issueLease leases the next URL of o, which must have one that is due.
func (m *Store) issueLease(o *schedule.Origin[*originQueue], now, expires time.Time) (storage.Lease, error) {
	e, ok := o.Queue.pop(now)
	if !ok {
		// This is a bug of this package or of schedule.
		return storage.Lease{}, fmt.Errorf("lease: a host is due that has no URL due")
	}
	if e.RobotsFor.IsZero() {
		m.seenURLs[seenKeyOf(&e)] = nil // it no longer awaits its revisit
	}
	m.lastLeaseToken++
	m.leases[m.lastLeaseToken] = &memoryLease{
		Lease:  m.schedule.BeginLease(o, m.lastLeaseToken, now, expires),
		origin: m.origins[e.URL.Origin()],
		entry:  e,
	}
	return storage.Lease{
		Entry: schedule.CloneEntry(e), HostState: o.Host.HostState, Token: m.lastLeaseToken, Expires: expires,
	}, nil
}

// expireLeases ends the leases that have expired by now, and returns their URLs to the heads of their
// queues.
func (m *Store) expireLeases(now time.Time) {
	for {
		expired := m.schedule.ExpireNext(now)
		if expired == nil {
			return
		}
		l := m.leases[expired.Token]
		delete(m.leases, expired.Token)
		l.origin.Queue.addToFront(l.entry)
		m.schedule.UpdateOrigin(&l.origin.Origin)
	}
}

// findLease returns the lease with the token and URL of l, nil if it has ended.
func (m *Store) findLease(l *storage.Lease) *memoryLease {
	if found := m.leases[l.Token]; found != nil && found.entry.URL == l.URL {
		return found
	}
	return nil
}

// Renew implements storage.Store.
func (m *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	leased := m.findLease(&l)
	if leased == nil || !leased.Expires.After(now) {
		return fmt.Errorf("renew %v: %w", l.URL, storage.ErrStaleLease)
	}
	m.schedule.Advance(now)
	m.schedule.RenewLease(leased.Lease, now.Add(ttl))
	return nil
}

// Counts implements storage.Inspector.
func (m *Store) Counts(ctx context.Context) (storage.Counts, error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return storage.Counts{}, err
	}
	defer m.mu.Unlock()
	counts := m.schedule.Counts()
	counts.ParkedURLs, counts.SeenURLs = m.parkedCount, len(m.seenURLs)
	return counts, nil
}

// Flush implements storage.Store. It does nothing: the Store writes nothing to disk.
func (m *Store) Flush(ctx context.Context) error {
	err := m.lockIfOpen(ctx)
	if err == nil {
		m.mu.Unlock()
	}
	return err
}

// Close implements storage.Store. The contents of the Store are lost.
func (m *Store) Close() error {
	if err := m.lockIfOpen(context.Background()); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.closed = true
	m.schedule = schedule.Schedule[*originQueue]{}
	m.hosts, m.origins, m.seenURLs, m.leases = nil, nil, nil, nil
	return nil
}
