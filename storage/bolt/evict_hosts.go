package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// Millions of hosts may have URLs, and nearly all of them wait. In memory a host with one origin takes
// about 1 KiB. Hosts beyond Options.MaxHostsInMemory are evicted: they are on disk, and the schedule
// keeps a stub of about 130 bytes of each, with the time of its turn. An evicted host is read back when
// its turn comes, or when a call changes one of its origins.

// evictHostIfClean evicts a host, unless the file does not have all of its present state or
// Schedule.IsHostEvictable returns false.
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

// reloadDueEvictedHosts reads back the evicted hosts that the schedule needs for NextOrigin and Wait.
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

// restoreHost brings an evicted host back into memory, with its evicted origins and with o, which may
// be one of them.
func (x *originCache) restoreHost(
	tx *bbolt.Tx, h *residentHost, evicted *schedule.EvictedHostStub, o *residentOrigin,
) error {
	// Read all origins before any change: after an error the host is still evicted.
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

	// Replace the stub in the schedule with the host and its origins.
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

// evictedOriginWaitingSince returns since when an evicted origin waits for its turn, false if the
// origin is not evicted.
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
