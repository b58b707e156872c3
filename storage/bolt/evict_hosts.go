package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Millions of hosts may have URLs, and nearly all of them wait. In memory a host with
// one origin takes about 1 KiB. Hosts beyond Options.Hosts are idle: they are on disk,
// and the schedule keeps about 130 bytes of each, with the time of its turn. An idle
// host is read back when its turn comes, or when a call changes one of its origins.

// evict makes a host idle, unless the file lacks some of its present state.
func (s *Store) evict(h *host) {
	if h.unlogged || h.unfolded || !s.turns.IsEvictable(&h.Host, h.origins) {
		return
	}
	for o := range h.Host.Origins {
		if !o.isFolded() {
			return
		}
	}
	for o := range h.Host.Origins {
		s.release(o)
		delete(s.origins, o.name)
		delete(s.numbers, o.number)
	}
	s.turns.Evict(&h.Host, h.number, func(o *origin) uint32 { return o.number })
	delete(s.hosts, h.name)
}

// wakeNext reads back the idle hosts that Lease must know.
func (s *Store) wakeNext(tx *bbolt.Tx) error {
	for idle := s.turns.NextIdle(); idle != nil; idle = s.turns.NextIdle() {
		o, err := s.read(tx, numberKey(idle.Origins[0].Number))
		if err != nil {
			return err
		}
		if err := s.admit(tx, o); err != nil {
			return err
		}
		s.entertain(o)
	}
	return nil
}

// wakeHost takes an idle host into memory, with all its origins and o, which may
// be one of them.
func (s *Store) wakeHost(tx *bbolt.Tx, h *host, idle *schedule.IdleHost, o *origin) error {
	// Read all of them first: an error leaves the host idle.
	origins := make([]*origin, len(idle.Origins))
	own := false
	for i, k := range idle.Origins {
		if k.Number == o.number {
			origins[i], own = o, true
			continue
		}
		var err error
		if origins[i], err = s.read(tx, numberKey(k.Number)); err != nil {
			return err
		}
	}
	s.turns.Wake(idle)
	s.hosts[h.name] = h
	for i, k := range idle.Origins {
		s.link(origins[i], h)
		s.turns.Restore(&origins[i].Origin, k.Since)
	}
	if !own {
		s.link(o, h)
	}
	return nil
}

// idleSince returns the schedule's record of an idle origin; false if the origin is not
// idle.
func (s *Store) idleSince(h *host, number uint32) (since int64, ok bool) {
	idle := s.turns.Idle(h.number)
	if idle == nil {
		return 0, false
	}
	for _, k := range idle.Origins {
		if k.Number == number {
			return k.Since, true
		}
	}
	return 0, false
}

// maxHostsInMemory is how many hosts that could be idle stay in memory.
func (s *Store) maxHostsInMemory() int { return s.opts.Share.of(s.opts.Hosts) }
