package bolt

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// maxRecentOrigins is how many origins stay in memory for a while because they were read or
// checkpointed, at most Options.MaxHostsInMemory.
const maxRecentOrigins = 4096

// An originCache finds origins and hosts, in memory and in the file. It keeps in memory the origins
// that have URLs to lease, have changes that are not checkpointed, or were used recently, with their
// hosts, and has the schedule of all hosts. Its methods require engine.mu.
type originCache struct {
	opts           *Options
	damageReporter *damageReporter
	journal        *journal
	heads          *headCache

	schedule           schedule.Schedule[*residentOrigin]
	minDue             time.Time                // no host is due earlier
	openedAfterCrashAt time.Time                // when the file was last opened after an unclean stop
	hosts              map[string]*residentHost // by name
	origins            map[decorum.Origin]*residentOrigin
	originsByNumber    map[uint32]*residentOrigin // the origins of the field origins
	lastOriginNumber   uint32                     // highest number of an origin
	recentOrigins      []*residentOrigin          // kept in memory for a while, the oldest first; see keepRecent
}

// storeTotals are sums over all origins.
type storeTotals struct{ seenCount, parkedCount int }

func (t *storeTotals) add(o *residentOrigin) {
	t.seenCount += o.seenCount
	t.parkedCount += o.parkedCount
}

// load loads the origins that have changes in the log, and then the origins of the file that have URLs
// to lease; the hosts of the latter it evicts beyond the limit. It returns the totals of all origins.
func (x *originCache) load(tx *bbolt.Tx, log *replayedLogState) (totals storeTotals, err error) {
	// Load in the order of the numbers: a host that is not in the file has the number of its first
	// origin.
	for _, number := range slices.Sorted(maps.Keys(log.origins)) {
		if err := x.restoreOriginFromLog(tx, log.origins[number], log); err != nil {
			return totals, err
		}
		totals.add(log.origins[number])
	}
	err = x.loadRemaining(tx, &totals)
	return totals, err
}

// restoreOriginFromLog loads an origin that has changes in the log.
func (x *originCache) restoreOriginFromLog(tx *bbolt.Tx, o *residentOrigin, log *replayedLogState) error {
	if x.origins[o.name] != nil {
		return x.damageReporter.errorf("log: %v has two numbers", o.name)
	}
	if err := x.attachWithHost(tx, o); err != nil {
		return err
	}
	// The first origin of a host applies the host's record from the log.
	if value := log.hostRecords[o.host.number]; value != nil && !o.host.uncheckpointed {
		state, err := record.ParseHostState(value)
		if err != nil {
			return x.damageReporter.errorf("log: host %q: %v", o.host.name, err)
		}
		o.host.uncheckpointed = true
		x.applyStoredHostState(o.host, state)
	}
	x.lastOriginNumber = max(x.lastOriginNumber, o.number)
	x.journal.adoptReplayed(o)
	x.schedule.UpdateOrigin(&o.Origin)
	return nil
}

// loadRemaining reads the origins of the file that are not in memory, and adds them to totals. It
// loads those with URLs to lease, and evicts their hosts again beyond the limit.
func (x *originCache) loadRemaining(tx *bbolt.Tx, totals *storeTotals) error {
	names := newChecksummedBucket(tx, bucketNames)
	return tx.Bucket([]byte(bucketOrigins)).ForEach(func(key, _ []byte) error {
		o, err := x.read(tx, key)
		if err != nil {
			return err
		}
		x.lastOriginNumber = max(x.lastOriginNumber, o.number)
		if x.originsByNumber[o.number] != nil {
			return nil // the log has a newer record
		}
		totals.add(o)
		if o.isEmpty() {
			return nil
		}
		// Verify the way back: a call finds the origin by its name.
		namedNumber, err := names.get(originNameKey(o.name.String()))
		if err != nil || len(namedNumber) != 4 || binary.BigEndian.Uint32(namedNumber) != o.number {
			return x.damageReporter.errorf("origin %v has no entry under its name", o.name)
		}
		if err := x.attachWithHost(tx, o); err != nil {
			return err
		}
		x.schedule.UpdateOrigin(&o.Origin)
		if len(x.hosts) > x.opts.hostLimit() {
			x.evictHostIfClean(o.host)
		}
		return nil
	})
}

// find returns an origin, which it loads if it is in the file only. It returns nil if the store has no
// such origin.
func (x *originCache) find(tx *bbolt.Tx, name decorum.Origin) (*residentOrigin, error) {
	if o := x.origins[name]; o != nil {
		return o, nil
	}
	number, err := x.number(tx, name)
	if number == nil || err != nil {
		return nil, err
	}
	o, err := x.read(tx, number)
	if err != nil {
		return nil, err
	}
	// The bucket names may lead to the record of another origin if it is damaged.
	if o.name != name {
		return nil, x.damageReporter.errorf("origin %v has the number of %v", name, o.name)
	}
	if err := x.attachWithHost(tx, o); err != nil {
		return nil, err
	}
	x.keepRecent(o)
	return o, nil
}

// getOrCreate is find for a call that creates the origin if the store does not have it.
func (x *originCache) getOrCreate(tx *bbolt.Tx, name decorum.Origin) (*residentOrigin, error) {
	o, err := x.find(tx, name)
	if o != nil || err != nil {
		return o, err
	}
	// name may be a substring of a long URL: the copy does not keep the URL in memory.
	name, _ = record.ParseOriginName(strings.Clone(name.String()))
	o = &residentOrigin{name: name, number: x.lastOriginNumber + 1, isNew: true}
	if err := x.attachWithHost(tx, o); err != nil {
		return nil, err
	}
	x.lastOriginNumber = o.number
	x.journal.markChanged(o)
	return o, nil
}

// number returns the number of an origin in the file, encoded as in keys; nil if the file does not
// have the origin.
func (x *originCache) number(tx *bbolt.Tx, name decorum.Origin) ([]byte, error) {
	number, err := newChecksummedBucket(tx, bucketNames).get(originNameKey(name.String()))
	if err == nil && number != nil && len(number) != 4 {
		err = binaryrecord.ErrDamaged
	}
	if err != nil {
		return nil, x.damageReporter.errorf("number of origin %v: %v", name, err)
	}
	return number, nil
}

// read returns the origin with a number from the file, without its host.
func (x *originCache) read(tx *bbolt.Tx, number []byte) (*residentOrigin, error) {
	value, err := newChecksummedBucket(tx, bucketOrigins).get(number)
	if err != nil {
		return nil, x.damageReporter.errorf("origin %x: %v", number, err)
	}
	if len(number) != 4 || value == nil {
		return nil, x.damageReporter.errorf("origin %x is missing", number)
	}
	o := &residentOrigin{number: binary.BigEndian.Uint32(number)}
	if err := parseOriginRecord(value, o); err != nil {
		return nil, x.damageReporter.errorf("origin %x: %v", number, err)
	}
	return o, nil
}

// readHost sets the number and the clock of h from the file. first is the number of an origin of h,
// which becomes the host's number if the file does not have the host. After an unclean stop the end of
// the host's last visit may be lost: then the host is postponed.
func (x *originCache) readHost(tx *bbolt.Tx, h *residentHost, first uint32) error {
	h.number = first
	number, err := newChecksummedBucket(tx, bucketNames).get(hostNameKey(h.name))
	if err != nil || number != nil && len(number) != 4 {
		return x.damageReporter.errorf("host %q: number %x", h.name, number)
	}
	if number != nil {
		h.number = binary.BigEndian.Uint32(number)
	}
	// No host is due before minDue; the clock in the file may be later.
	h.PostponeUntil(x.minDue)
	value, err := newChecksummedBucket(tx, bucketHosts).get(numberKey(h.number))
	if err != nil {
		return x.damageReporter.errorf("host %q: %v", h.name, err)
	}
	if value != nil {
		state, err := record.ParseHostState(value)
		if err != nil {
			return x.damageReporter.errorf("host %q: %v", h.name, err)
		}
		x.applyStoredHostState(h, state)
	}
	return nil
}

// applyStoredHostState sets the clock of a host to a state from the file or its log. After an unclean
// stop it postpones the host by its LostVisitDelay from the opening on.
func (x *originCache) applyStoredHostState(h *residentHost, state storage.HostState) {
	h.SetState(state)
	if !x.openedAfterCrashAt.IsZero() {
		h.PostponeUntil(x.openedAfterCrashAt.Add(h.LostVisitDelay))
	}
}

// attachWithHost adds o to the memory, with its host. If the host is evicted, it restores the other
// origins of the host, too.
func (x *originCache) attachWithHost(tx *bbolt.Tx, o *residentOrigin) error {
	if h := x.hosts[o.name.Host()]; h != nil {
		x.attach(o, h)
		return nil
	}
	h := &residentHost{name: o.name.Host()}
	if err := x.readHost(tx, h, o.number); err != nil {
		return err
	}
	evicted := x.schedule.EvictedHostByNumber(h.number)
	if evicted == nil {
		x.hosts[h.name] = h
		x.attach(o, h)
		return nil
	}
	return x.restoreHost(tx, h, evicted, o)
}

// attach adds o to the memory, as an origin of a host that is in memory.
func (x *originCache) attach(o *residentOrigin, h *residentHost) {
	h.originsInMemory++
	o.host, o.Host, o.Queue = h, &h.Host, o
	x.origins[o.name] = o
	x.originsByNumber[o.number] = o
}

// removeOrigin removes o from memory, and its host with the last of its origins.
func (x *originCache) removeOrigin(o *residentOrigin) {
	delete(x.origins, o.name)
	delete(x.originsByNumber, o.number)
	if o.host.originsInMemory--; o.host.originsInMemory == 0 {
		delete(x.hosts, o.host.name)
	}
}

// keepRecent keeps o in memory until maxRecentOrigins others were used after it, even if o has no URLs.
// Then o may be removed or evicted.
func (x *originCache) keepRecent(o *residentOrigin) {
	x.recentOrigins = append(x.recentOrigins, o)
	for len(x.recentOrigins) > min(maxRecentOrigins, x.opts.hostLimit()) {
		x.forgetOrEvict(x.recentOrigins[0])
		x.recentOrigins = x.recentOrigins[1:]
	}
}

// forgetOrEvict removes o from memory if it has no URLs to lease and the file has its state. If the
// host stays, and there are more hosts in memory than the limit, it evicts the host.
func (x *originCache) forgetOrEvict(o *residentOrigin) {
	if x.originsByNumber[o.number] != o || !o.isFullyCheckpointed() {
		return
	}
	if o.isEmpty() {
		x.removeOrigin(o)
	}
	if o.host.originsInMemory > 0 && len(x.hosts) > x.opts.hostLimit() {
		x.evictHostIfClean(o.host)
	}
}

// info describes the origin with a number. An origin that is in the file only stays there.
func (x *originCache) info(tx *bbolt.Tx, number uint32) (storage.OriginInfo, error) {
	o := x.originsByNumber[number]
	if o != nil {
		return o.info(), nil
	}
	o, err := x.read(tx, numberKey(number))
	if err != nil {
		return storage.OriginInfo{}, err
	}
	// The origin is in the file only: combine it with its host, without adding either to the memory.
	h := x.hosts[o.name.Host()]
	if h == nil {
		h = &residentHost{name: o.name.Host()}
		if err := x.readHost(tx, h, number); err != nil {
			return storage.OriginInfo{}, err
		}
	}
	o.host, o.Host, o.Queue = h, &h.Host, o
	info := o.info()
	if waitingSince, isEvicted := x.evictedOriginWaitingSince(h, number); isEvicted {
		info.NextDue = schedule.EvictedOriginNextDue(&o.Origin, waitingSince)
	}
	return info, nil
}

// infoByName is info for the name of an origin. It returns false if the store has no such origin.
func (x *originCache) infoByName(tx *bbolt.Tx, name decorum.Origin) (info storage.OriginInfo, found bool, err error) {
	number, err := x.number(tx, name)
	if err != nil || number == nil {
		return info, false, err
	}
	if info, err = x.info(tx, binary.BigEndian.Uint32(number)); err != nil {
		return info, false, err
	}
	if info.Origin != name {
		return info, false, x.damageReporter.errorf("origin %v has the number of %v", name, info.Origin)
	}
	return info, true, nil
}

// name returns the name of the origin with a number.
func (x *originCache) name(tx *bbolt.Tx, number uint32) (decorum.Origin, error) {
	if o := x.originsByNumber[number]; o != nil {
		return o.name, nil
	}
	o, err := x.read(tx, numberKey(number))
	if err != nil {
		return decorum.Origin{}, err
	}
	return o.name, nil
}
