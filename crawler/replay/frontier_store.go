package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// errNothing says that a host has nothing that may be asked for now.
var errNothing = errors.New("nothing may be asked for")

// A Store keeps the state of a replay in memory, each host by itself: whose turn it
// is, the ledger says. It implements storage.Store, and of storage.Inspector what a
// crawl asks.
type Store struct {
	mu    sync.Mutex
	index map[string]int
	hosts []*storage.Memory
	turn  string // the host whose URLs Lease hands out
	// awaited reports whether an entry is left for another page to be found on.
	awaited func(*storage.Entry) bool
}

// newStore returns an empty Store.
func newStore(awaited func(*storage.Entry) bool) *Store {
	return &Store{index: map[string]int{}, awaited: awaited}
}

// tokenBits are what of a token says whose host it is: tokens are unique among all.
const tokenBits = 24

// of returns the store of a host, and its number.
func (s *Store) of(host string) (*storage.Memory, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[host]
	if !ok {
		i = len(s.hosts)
		s.index[host] = i
		s.hosts = append(s.hosts, storage.NewMemory(storage.Config{}))
	}
	return s.hosts[i], i
}

// at returns the store that a lease is of, and the lease as that knows it.
func (s *Store) at(l storage.Lease) (*storage.Memory, storage.Lease) {
	m, _ := s.of(l.URL.Origin().Host())
	l.Token >>= tokenBits
	return m, l
}

// all returns the stores of all hosts.
func (s *Store) all() []*storage.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[:len(s.hosts):len(s.hosts)]
}

// Add implements storage.Store.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.Fate, error) {
	fates := make([]storage.Fate, len(entries))
	for i, e := range entries {
		if s.awaited(&e) {
			fates[i] = storage.Known
			continue
		}
		m, _ := s.of(e.URL.Origin().Host())
		fate, err := m.Add(ctx, []storage.Entry{e}, maxPerOrigin)
		if err != nil {
			return nil, err
		}
		fates[i] = fate[0]
	}
	return fates, nil
}

// forever is longer than any crawl.
const forever = 100 * 365 * 24 * time.Hour

// Lease hands out URLs of the host whose turn it is. If there is none, it returns an
// error that says when there will be.
func (s *Store) Lease(ctx context.Context, now time.Time, _ time.Duration, maxLeases int) ([]storage.Lease, storage.Next, error) {
	m, i := s.of(s.turn)
	leases, next, err := m.Lease(ctx, now, forever, min(maxLeases, 1))
	for j := range leases {
		leases[j].Token = leases[j].Token<<tokenBits | uint64(i)
		leases[j].Expires = time.Now().Add(forever) // by the clock of the machine
	}
	switch {
	case err != nil || len(leases) > 0:
		return leases, next, err
	case next.Left == storage.Nothing:
		return nil, next, fmt.Errorf("%w: nothing is queued", errNothing)
	case next.At.After(now):
		return nil, next, fmt.Errorf("%w for another %v", errNothing, next.At.Sub(now))
	}
	return nil, next, errNothing
}

// AdmitHosts implements storage.Store. It admits all hosts: which of them the
// recorded crawl admitted, its ledger says by their visits.
func (s *Store) AdmitHosts(
	_ context.Context, hosts []storage.HostAdmission, _ storage.HostLimits,
) ([]storage.HostFate, error) {
	fates := make([]storage.HostFate, len(hosts))
	for i := range fates {
		fates[i] = storage.HostKnown
	}
	return fates, nil
}

// HostCount implements storage.Store.
func (s *Store) HostCount(context.Context, storage.HostAdmission) (storage.HostCount, error) {
	return storage.HostCount{Hosts: len(s.all()), Counted: true}, nil
}

// Renew implements storage.Store: leases do not run out.
func (s *Store) Renew(context.Context, storage.Lease, time.Time, time.Duration) error { return nil }

// Mark implements storage.Store.
func (s *Store) Mark(ctx context.Context, l storage.Lease, sent bool) error {
	m, l := s.at(l)
	return m.Mark(ctx, l, sent)
}

// Ack implements storage.Store.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) (err error) {
	for _, a := range acks {
		var m *storage.Memory
		m, a.Lease = s.at(a.Lease)
		err = errors.Join(err, m.Ack(ctx, []storage.Ack{a}))
	}
	return err
}

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, o decorum.Origin, until time.Time, dormant bool) error {
	m, _ := s.of(o.Host())
	return m.Hold(ctx, o, until, dormant)
}

// Recall implements storage.Store.
func (s *Store) Recall(ctx context.Context, now time.Time, sightings []storage.Sighting) (recalled int, err error) {
	for _, g := range sightings {
		m, _ := s.of(g.URL.Origin().Host())
		n, err := m.Recall(ctx, now, []storage.Sighting{g})
		if recalled += n; err != nil {
			return recalled, err
		}
	}
	return recalled, nil
}

// Revive implements storage.Store.
func (s *Store) Revive(ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool) (int, error) {
	m, _ := s.of(o.Host())
	return m.Revive(ctx, o, shouldUnpark)
}

// Parked implements storage.Store.
func (s *Store) Parked(ctx context.Context) (parked []decorum.Origin, err error) {
	for _, m := range s.all() {
		origins, err := m.Parked(ctx)
		if err != nil {
			return nil, err
		}
		parked = append(parked, origins...)
	}
	return parked, nil
}

// Note implements storage.Store.
func (s *Store) ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	m, _ := s.of(o.Host())
	return m.ReadNote(ctx, o, key)
}

// SetNote implements storage.Store.
func (s *Store) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	m, _ := s.of(o.Host())
	return m.SetNote(ctx, o, key, value)
}

// Counts implements storage.Store.
func (s *Store) Counts(ctx context.Context) (sum storage.Counts, err error) {
	for _, m := range s.all() {
		c, err := m.Counts(ctx)
		if err != nil {
			return sum, err
		}
		sum.Hosts, sum.Due, sum.Queued, sum.Leased = sum.Hosts+c.Hosts, sum.Due+c.Due, sum.Queued+c.Queued, sum.Leased+c.Leased
		sum.Parked, sum.Seen, sum.Dormant, sum.Resting = sum.Parked+c.Parked, sum.Seen+c.Seen, sum.Dormant+c.Dormant, sum.Resting+c.Resting
	}
	return sum, nil
}

// Flush implements storage.Store.
func (s *Store) Flush(context.Context) error { return nil }

// Close implements storage.Store.
func (s *Store) Close() (err error) {
	for _, m := range s.all() {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Origins implements storage.Inspector, as do the methods that follow.
func (s *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	more := true
	for _, m := range s.all() {
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

// Origin tells of one origin.
func (s *Store) Origin(ctx context.Context, o decorum.Origin) (storage.OriginInfo, bool, error) {
	m, _ := s.of(o.Host())
	return m.Origin(ctx, o)
}

// URLs tells of the URLs of an origin.
func (s *Store) URLs(ctx context.Context, o decorum.Origin, in storage.State, yield func(storage.Entry, time.Time) bool) error {
	m, _ := s.of(o.Host())
	return m.URLs(ctx, o, in, yield)
}

// Known reports whether a URL was seen.
func (s *Store) Known(ctx context.Context, u decorum.URL) (bool, error) {
	m, _ := s.of(u.Origin().Host())
	return m.Known(ctx, u)
}

// Seen tells what of an origin was seen.
func (s *Store) Seen(ctx context.Context, o decorum.Origin, yield func(uint64) bool) error {
	m, _ := s.of(o.Host())
	return m.Seen(ctx, o, yield)
}

// Notes tells the notes of an origin.
func (s *Store) Notes(ctx context.Context, o decorum.Origin, yield func(string, []byte) bool) error {
	m, _ := s.of(o.Host())
	return m.Notes(ctx, o, yield)
}

// Import implements storage.Importer.
func (s *Store) Import(ctx context.Context, parcels []storage.Parcel) error {
	for _, p := range parcels {
		m, _ := s.of(p.Origin.Host())
		if err := m.Import(ctx, []storage.Parcel{p}); err != nil {
			return err
		}
	}
	return nil
}
