package storage

import (
	"context"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

var _ Inspector = (*Memory)(nil)

// Origins implements Inspector.
func (m *Memory) Origins(ctx context.Context, yield func(OriginInfo) bool) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	leased := m.leased()
	for name, o := range m.origins {
		if name.IsZero() { // the crawl's own, for notes
			continue
		}
		if !yield(o.info(name, leased[o])) {
			return nil
		}
	}
	return nil
}

// Origin implements Inspector.
func (m *Memory) Origin(ctx context.Context, name decorum.Origin) (info OriginInfo, ok bool, err error) {
	if err := m.lock(ctx); err != nil {
		return OriginInfo{}, false, err
	}
	defer m.mu.Unlock()
	o := m.origins[name]
	if o == nil || name.IsZero() {
		return OriginInfo{}, false, nil
	}
	return o.info(name, m.leased()[o]), true, nil
}

// leased counts the leases of each origin.
func (m *Memory) leased() map[*memoryOrigin]int {
	leased := make(map[*memoryOrigin]int)
	for _, l := range m.leases {
		leased[l.origin]++
	}
	return leased
}

func (o *memoryOrigin) info(name decorum.Origin, leased int) OriginInfo {
	queued, _ := o.Queue.Len()
	resting, _ := o.Queue.Resting()
	next, _ := o.Next()
	return OriginInfo{
		Origin: name, Host: Host(o.Host.Clock), Hold: o.Hold, Dormant: o.Dormant,
		Queued: queued, Leased: leased, Resting: resting, Parked: len(o.parked), Seen: o.seen, Next: next,
	}
}

// URLs implements Inspector. Leased URLs come first: there they go if their
// leases run out.
func (m *Memory) URLs(ctx context.Context, name decorum.Origin, in State, yield func(Entry, time.Time) bool) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	o := m.origins[name]
	if o == nil {
		return nil
	}
	for _, l := range m.list(o, in) {
		if !yield(l.Entry, l.at) {
			return nil
		}
	}
	return nil
}

// A listed URL is one that an Inspector tells of.
type listed struct {
	Entry
	at time.Time
}

// list returns the URLs of o that are in the state.
func (m *Memory) list(o *memoryOrigin, s State) (all []listed) {
	switch s {
	case InParking:
		for _, e := range o.parked {
			all = append(all, listed{Entry: e})
		}
	case InRest:
		all = o.Queue.list(schedule.Resting)
	case InQueue:
		for _, l := range m.leases {
			if l.origin == o {
				all = append(all, listed{Entry: l.entry})
			}
		}
		for lane := range schedule.Resting {
			all = append(all, o.Queue.list(lane)...)
		}
	}
	return all
}

// list returns what waits in the lane, in its order.
func (q *memoryQueue) list(lane schedule.Lane) (all []listed) {
	for _, w := range slices.SortedFunc(slices.Values(q.lines[lane]), (*waiting).compare) {
		l := listed{Entry: w.Entry}
		if lane.Timed() {
			l.at = w.time().UTC()
		}
		all = append(all, l)
	}
	return all
}

// Known implements Inspector.
func (m *Memory) Known(ctx context.Context, u decorum.URL) (bool, error) {
	if err := m.lock(ctx); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	_, known := m.seen[seenKey{u.Origin(), Fingerprint(u)}]
	return known, nil
}

// Seen implements Inspector.
func (m *Memory) Seen(ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for k := range m.seen {
		if k.origin == o && !yield(k.print) {
			return nil
		}
	}
	return nil
}

// Notes implements Inspector.
func (m *Memory) Notes(ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	o := m.origins[name]
	if o == nil {
		return nil
	}
	for key, value := range o.notes {
		if !yield(key, value) {
			return nil
		}
	}
	return nil
}
