package storage

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A Config is the settings of a Memory.
type Config struct {
	// MaxURLs is how many URLs the seen set may hold. An Add that would go
	// beyond is refused whole with ErrFull. 0 means ten million.
	MaxURLs int
}

// A Memory is a Store for tests and for crawls that need not survive their
// process. Use NewMemory.
type Memory struct {
	maxURLs int

	mu      sync.Mutex
	closed  bool
	turns   schedule.Schedule[*memoryQueue]
	hosts   map[string]*memoryHost
	origins map[decorum.Origin]*memoryOrigin
	seen    map[seenKey]*waiting // where it waits, if it rests
	leases  map[uint64]*memoryLease
	parked  int
	counted countedHosts
	order   uint64 // the last number given: of leases
}

type memoryHost = schedule.Host[*memoryQueue]

type memoryOrigin struct {
	schedule.Origin[*memoryQueue]
	parked []Entry
	notes  map[string][]byte
	seen   int // of its URLs in the seen set
}

type memoryLease struct {
	*schedule.Lease[*memoryQueue]
	origin *memoryOrigin
	entry  Entry
}

// A seenKey is what the seen set holds of an entry.
type seenKey struct {
	origin decorum.Origin
	print  uint64
}

func keyOf(e *Entry) seenKey { return seenKey{e.URL.Origin(), e.Fingerprint()} }

var _ Store = (*Memory)(nil)

// NewMemory returns an empty Memory.
func NewMemory(cfg Config) *Memory {
	if cfg.MaxURLs <= 0 {
		cfg.MaxURLs = 10_000_000
	}
	return &Memory{
		maxURLs: cfg.MaxURLs,
		hosts:   make(map[string]*memoryHost),
		origins: make(map[decorum.Origin]*memoryOrigin),
		seen:    make(map[seenKey]*waiting),
		leases:  make(map[uint64]*memoryLease),
	}
}

// lock locks m for a call, unless the call must not be made.
func (m *Memory) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	return nil
}

// origin returns the state of o, new if need be.
func (m *Memory) origin(o decorum.Origin) *memoryOrigin {
	if origin := m.origins[o]; origin != nil {
		return origin
	}
	host := m.hosts[o.Host()]
	if host == nil {
		host = &memoryHost{}
		m.hosts[o.Host()] = host
	}
	origin := &memoryOrigin{}
	origin.Queue, origin.Host = &memoryQueue{}, host
	m.origins[o] = origin
	return origin
}

// Add implements Store.
func (m *Memory) Add(ctx context.Context, entries []Entry, maxPerOrigin int) ([]Fate, error) {
	if err := CheckEntries(entries); err != nil {
		return nil, err
	}
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if !m.hasCapacity(entries) {
		return nil, fmt.Errorf("add: %d URLs are kept in memory already: %w", len(m.seen), ErrFull)
	}
	fates := make([]Fate, len(entries))
	for i, e := range entries {
		fates[i] = m.add(e, maxPerOrigin)
	}
	return fates, nil
}

func (m *Memory) add(e Entry, maxPerOrigin int) Fate {
	o := m.origin(e.URL.Origin())
	if e.For.IsZero() {
		if _, seen := m.seen[keyOf(&e)]; !seen && maxPerOrigin > 0 && o.seen >= maxPerOrigin {
			return Over
		}
		if !m.see(o, keyOf(&e)) {
			return Known
		}
	}
	e.Context, e.Page = bytes.Clone(e.Context), clonePage(e.Page)
	o.Queue.add(e)
	m.turns.Update(&o.Origin)
	return Added
}

// see puts an entry of o into the seen set; false if it was there.
func (m *Memory) see(o *memoryOrigin, k seenKey) bool {
	if _, seen := m.seen[k]; seen {
		return false
	}
	m.seen[k] = nil
	o.seen++
	return true
}

// hasCapacity reports whether the seen set has room for the new ones of the entries.
func (m *Memory) hasCapacity(entries []Entry) bool {
	free := m.maxURLs - len(m.seen)
	if len(entries) <= free {
		return true
	}
	fresh := make(map[seenKey]struct{})
	for _, e := range entries {
		if _, seen := m.seen[keyOf(&e)]; !seen && e.For.IsZero() {
			fresh[keyOf(&e)] = struct{}{}
		}
	}
	return len(fresh) <= free
}

// Lease implements Store.
func (m *Memory) Lease(ctx context.Context, now time.Time, ttl time.Duration, max int) ([]Lease, Next, error) {
	if err := m.lock(ctx); err != nil {
		return nil, Next{}, err
	}
	defer m.mu.Unlock()
	m.turns.Advance(now)
	m.expire(now)
	var leases []Lease
	for len(leases) < max {
		turn := m.turns.Turn(now)
		if turn == nil {
			break
		}
		e, ok := turn.Queue.pop(now)
		if !ok {
			return leases, Next{}, fmt.Errorf("lease: a host is due that has no URL due") // cannot be
		}
		leases = append(leases, m.begin(turn, e, now, now.Add(ttl)))
	}
	left, at := m.turns.Left()
	return leases, Next{Left: Left(left), At: at}, nil
}

// begin makes the lease of e, which was just taken out of the queue of o.
func (m *Memory) begin(o *schedule.Origin[*memoryQueue], e Entry, now, expires time.Time) Lease {
	if e.For.IsZero() {
		m.seen[keyOf(&e)] = nil // it rests no more
	}
	m.order++
	m.leases[m.order] = &memoryLease{
		Lease:  m.turns.Begin(o, m.order, now, expires),
		origin: m.origins[e.URL.Origin()],
		entry:  e,
	}
	l := Lease{Entry: e, Host: Host(o.Host.Clock), Token: m.order, Expires: expires}
	l.Context, l.Page = bytes.Clone(e.Context), clonePage(e.Page) // its holder may write to them
	return l
}

func clonePage(p *Page) *Page {
	if p == nil {
		return nil
	}
	clone := *p
	return &clone
}

// expire gives back the URLs of leases that ran out.
func (m *Memory) expire(now time.Time) {
	for {
		out := m.turns.Expired(now)
		if out == nil {
			return
		}
		l := m.leases[out.Token]
		delete(m.leases, out.Token)
		l.origin.Queue.giveBack(l.entry)
		m.turns.Update(&l.origin.Origin)
	}
}

// Renew implements Store.
func (m *Memory) Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	out := m.leases[l.Token]
	if out == nil || out.entry.URL != l.URL || !out.Expires.After(now) {
		return fmt.Errorf("renew %v: %w", l.URL, ErrStale)
	}
	m.turns.Advance(now)
	m.turns.Renew(out.Lease, now.Add(ttl))
	return nil
}

// Counts implements Store.
func (m *Memory) Counts(ctx context.Context) (Counts, error) {
	if err := m.lock(ctx); err != nil {
		return Counts{}, err
	}
	defer m.mu.Unlock()
	return Counts{
		Hosts:   m.turns.Hosts,
		Due:     m.turns.Due(),
		Queued:  m.turns.Queued,
		Leased:  m.turns.Leased(),
		Parked:  m.parked,
		Seen:    len(m.seen),
		Dormant: m.turns.Dormant,
		Resting: m.turns.Resting,
	}, nil
}

// Flush implements Store: there is nothing to do.
func (m *Memory) Flush(ctx context.Context) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	m.mu.Unlock()
	return nil
}

// Close implements Store. What the Memory held is gone.
func (m *Memory) Close() error {
	if err := m.lock(context.Background()); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.closed = true
	m.turns = schedule.Schedule[*memoryQueue]{}
	m.hosts, m.origins, m.seen, m.leases = nil, nil, nil, nil
	return nil
}
