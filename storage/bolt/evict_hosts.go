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
func (x *originCache) evictHostIfClean(h *residentHost) {
	if h.hasUnloggedChanges || h.uncheckpointed || !x.schedule.IsHostEvictable(&h.Host, h.originsInMemory) {
		return
	}
	for o := range h.Host.OriginsWithURLs {
		if !o.isFullyCheckpointed() {
			return
		}
	}
	for o := range h.Host.OriginsWithURLs {
		x.heads.remove(o)
		x.removeOrigin(o)
	}
	x.schedule.EvictHost(&h.Host, h.number, func(o *residentOrigin) uint32 { return o.number })
}

// reloadDueEvictedHosts reads back the idle hosts that Lease must know.
func (x *originCache) reloadDueEvictedHosts(tx *bbolt.Tx) error {
	for evicted := x.schedule.NextHostToRestore(); evicted != nil; evicted = x.schedule.NextHostToRestore() {
		o, err := x.read(tx, numberKey(evicted.Origins[0].OriginNumber))
		if err != nil {
			return err
		}
		if err := x.attachWithHost(tx, o); err != nil {
			return err
		}
		x.keepRecent(o)
	}
	return nil
}

// restoreHost takes an idle host into memory, with all its origins and o, which may
// be one of them.
func (x *originCache) restoreHost(
	tx *bbolt.Tx, h *residentHost, evicted *schedule.EvictedHostStub, o *residentOrigin,
) error {
	// Read all of them first: an error leaves the host idle.
	origins := make([]*residentOrigin, len(evicted.Origins))
	hasOwn := false
	for i, k := range evicted.Origins {
		if k.OriginNumber == o.number {
			origins[i], hasOwn = o, true
			continue
		}
		var err error
		if origins[i], err = x.read(tx, numberKey(k.OriginNumber)); err != nil {
			return err
		}
	}
	x.schedule.RemoveFromEvictedHosts(evicted)
	x.hosts[h.name] = h
	for i, k := range evicted.Origins {
		x.attach(origins[i], h)
		x.schedule.RestoreEvictedOrigin(&origins[i].Origin, k.WaitingSince)
	}
	if !hasOwn {
		x.attach(o, h)
	}
	return nil
}

// evictedOriginWaitingSince returns the schedule's record of an idle origin; false if the origin is not
// idle.
func (x *originCache) evictedOriginWaitingSince(h *residentHost, number uint32) (waitingSince int64, ok bool) {
	evicted := x.schedule.EvictedHostByNumber(h.number)
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
