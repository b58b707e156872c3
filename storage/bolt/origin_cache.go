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

// maxRecentOrigins is how many origins stay in memory only because they were read; it is at
// most Options.MaxHostsInMemory.
const maxRecentOrigins = 4096

// An originCache finds origins and hosts, in memory and in the file. In memory are the origins
// that have something to hand out, are changed and not checkpointed, or were just looked at, with
// their hosts; the schedule says whose turn it is. It requires the lock of the store.
type originCache struct {
	opts           *Options
	damageReporter *damageReporter
	journal        *journal
	heads          *headCache

	schedule           schedule.Schedule[*residentOrigin]
	minDue             time.Time // no host is due before
	openedAfterCrashAt time.Time // when the file was last opened after an unclean stop
	hosts              map[string]*residentHost
	origins            map[decorum.Origin]*residentOrigin
	originsByNumber    map[uint32]*residentOrigin // the same, by number
	lastOriginNumber   uint32                     // number given to an origin
	recentOrigins      []*residentOrigin          // looked at, and kept for a while though they may hold nothing
}

// A storeTotals is what origins hold together.
type storeTotals struct{ seenCount, parkedCount int }

func (t *storeTotals) add(o *residentOrigin) {
	t.seenCount += o.seenCount
	t.parkedCount += o.parkedCount
}

// load takes into memory the origins that the log has changes of, and those in the file that
// are in play; of the latter some go into the schedule as idle. It returns what all origins
// hold.
func (x *originCache) load(tx *bbolt.Tx, log *replayedLogState) (totals storeTotals, err error) {
	// In order: a host that is not in the file has the number of its first origin.
	for _, number := range slices.Sorted(maps.Keys(log.origins)) {
		if err := x.restoreOriginFromLog(tx, log.origins[number], log); err != nil {
			return totals, err
		}
		totals.add(log.origins[number])
	}
	err = x.loadRemaining(tx, &totals)
	return totals, err
}

// restoreOriginFromLog takes an origin out of the log into memory.
func (x *originCache) restoreOriginFromLog(tx *bbolt.Tx, o *residentOrigin, log *replayedLogState) error {
	if x.origins[o.name] != nil {
		return x.damageReporter.errorf("log: %v has two numbers", o.name)
	}
	if err := x.attachWithHost(tx, o); err != nil {
		return err
	}
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

// loadRemaining adds to totals the origins in the file that are not in memory, and
// takes those into it that are in play, or into the schedule as idle.
func (x *originCache) loadRemaining(tx *bbolt.Tx, totals *storeTotals) error {
	names := newChecksummedBucket(tx, bucketNames)
	return tx.Bucket([]byte(bucketOrigins)).ForEach(func(key, _ []byte) error {
		o, err := x.read(tx, key)
		if err != nil {
			return err
		}
		x.lastOriginNumber = max(x.lastOriginNumber, o.number)
		if x.originsByNumber[o.number] != nil {
			return nil // the log knows it better
		}
		totals.add(o)
		if o.isEmpty() {
			return nil
		}
		namedNumber, err := names.get(originNameKey(o.name.String()))
		if err != nil || len(namedNumber) != 4 || binary.BigEndian.Uint32(namedNumber) != o.number {
			return x.damageReporter.errorf("origin %v is not to be found by its name", o.name)
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

// find returns the state of an origin; nil if it was never met.
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
	if o.name != name {
		return nil, x.damageReporter.errorf("origin %v has the number of %v", name, o.name)
	}
	if err := x.attachWithHost(tx, o); err != nil {
		return nil, err
	}
	x.keepRecent(o)
	return o, nil
}

// getOrCreate returns the state of an origin, new if it was never met.
func (x *originCache) getOrCreate(tx *bbolt.Tx, name decorum.Origin) (*residentOrigin, error) {
	o, err := x.find(tx, name)
	if o != nil || err != nil {
		return o, err
	}
	// name may be a part of a long URL, which it would keep in memory.
	name, _ = record.ParseOriginName(strings.Clone(name.String()))
	o = &residentOrigin{name: name, number: x.lastOriginNumber + 1, isNew: true}
	if err := x.attachWithHost(tx, o); err != nil {
		return nil, err
	}
	x.lastOriginNumber = o.number
	x.journal.markChanged(o)
	return o, nil
}

// number returns the number of an origin in the file, as in keys; nil if the file
// lacks the origin.
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

// read returns an origin as it is in the file, and without its host.
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

// readHost reads number and clock of a host. first is the number of one of its
// origins: it is the host's if that has none. After an unclean stop the end of
// the last visit may be what was lost: then it rests.
func (x *originCache) readHost(tx *bbolt.Tx, h *residentHost, first uint32) error {
	h.number = first
	number, err := newChecksummedBucket(tx, bucketNames).get(hostNameKey(h.name))
	if err != nil || number != nil && len(number) != 4 {
		return x.damageReporter.errorf("host %q: number %x", h.name, number)
	}
	if number != nil {
		h.number = binary.BigEndian.Uint32(number)
	}
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

// applyStoredHostState sets the clock of a host as it was when the store was opened, or before.
func (x *originCache) applyStoredHostState(h *residentHost, state storage.HostState) {
	h.SetState(state)
	if !x.openedAfterCrashAt.IsZero() {
		h.PostponeUntil(x.openedAfterCrashAt.Add(h.LostVisitDelay))
	}
}

// attachWithHost takes an origin into memory, and its host. If the host is idle, its other
// origins come with it.
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

// attach makes o an origin of a host that is in memory.
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

// keepRecent keeps an origin for a while, though it may hold nothing.
func (x *originCache) keepRecent(o *residentOrigin) {
	x.recentOrigins = append(x.recentOrigins, o)
	for len(x.recentOrigins) > min(maxRecentOrigins, x.opts.hostLimit()) {
		x.forgetOrEvict(x.recentOrigins[0])
		x.recentOrigins = x.recentOrigins[1:]
	}
}

// forgetOrEvict forgets an origin that holds nothing, and its host with the last of
// its origins: they are in the file. One that holds something it evicts, where
// there are many hosts.
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

// info tells of the origin with a number, in memory or in the file.
func (x *originCache) info(tx *bbolt.Tx, number uint32) (storage.OriginInfo, error) {
	o := x.originsByNumber[number]
	if o != nil {
		return o.info(), nil
	}
	o, err := x.read(tx, numberKey(number))
	if err != nil {
		return storage.OriginInfo{}, err
	}
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

// infoByName tells of an origin, which stays in the file if it is not in memory; false if it was
// never met.
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
