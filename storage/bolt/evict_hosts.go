package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Millions of hosts may have URLs, and nearly all of them wait. In memory a host with
// one origin takes about 1 KiB. Hosts beyond Options.MaxHostsInMemory are idle: they are on disk,
// and the schedule keeps about 130 bytes of each, with the time of its turn. An idle
// host is read back when its turn comes, or when a call changes one of its origins.

// evictHostIfClean makes a host idle, unless the file lacks some of its present state.
func (s *Store) evictHostIfClean(h *loadedHost) {
	if h.hasUnloggedChanges || h.uncheckpointed || !s.schedule.IsHostEvictable(&h.Host, h.originsInMemory) {
		return
	}
	for o := range h.Host.OriginsWithURLs {
		if !o.isFullyCheckpointed() {
			return
		}
	}
	for o := range h.Host.OriginsWithURLs {
		s.heads.remove(o)
		delete(s.origins, o.name)
		delete(s.originsByNumber, o.number)
	}
	s.schedule.EvictHost(&h.Host, h.number, func(o *loadedOrigin) uint32 { return o.number })
	delete(s.hosts, h.name)
}

// reloadDueEvictedHosts reads back the idle hosts that Lease must know.
func (s *Store) reloadDueEvictedHosts(tx *bbolt.Tx) error {
	for evicted := s.schedule.NextHostToRestore(); evicted != nil; evicted = s.schedule.NextHostToRestore() {
		o, err := s.readOrigin(tx, numberKey(evicted.Origins[0].OriginNumber))
		if err != nil {
			return err
		}
		if err := s.loadHostAndAttachOrigin(tx, o); err != nil {
			return err
		}
		s.keepRecentOrigin(o)
	}
	return nil
}

// restoreHost takes an idle host into memory, with all its origins and o, which may
// be one of them.
func (s *Store) restoreHost(tx *bbolt.Tx, h *loadedHost, evicted *schedule.EvictedHostStub, o *loadedOrigin) error {
	// Read all of them first: an error leaves the host idle.
	origins := make([]*loadedOrigin, len(evicted.Origins))
	hasOwn := false
	for i, k := range evicted.Origins {
		if k.OriginNumber == o.number {
			origins[i], hasOwn = o, true
			continue
		}
		var err error
		if origins[i], err = s.readOrigin(tx, numberKey(k.OriginNumber)); err != nil {
			return err
		}
	}
	s.schedule.RemoveFromEvictedHosts(evicted)
	s.hosts[h.name] = h
	for i, k := range evicted.Origins {
		s.attachOrigin(origins[i], h)
		s.schedule.RestoreEvictedOrigin(&origins[i].Origin, k.WaitingSince)
	}
	if !hasOwn {
		s.attachOrigin(o, h)
	}
	return nil
}

// evictedOriginWaitingSince returns the schedule's record of an idle origin; false if the origin is not
// idle.
func (s *Store) evictedOriginWaitingSince(h *loadedHost, number uint32) (waitingSince int64, ok bool) {
	evicted := s.schedule.EvictedHostByNumber(h.number)
	if evicted == nil {
		return 0, false
	}
	for _, k := range evicted.Origins {
		if k.OriginNumber == number {
			return k.WaitingSince, true
		}
	}
	return 0, false
}
