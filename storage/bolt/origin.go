package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// maxRecentOrigins is how many origins stay in memory only because they were read; it is at
// most Options.Hosts.
const maxRecentOrigins = 4096

type host struct {
	schedule.Host[*origin]
	name     string
	number   uint32 // that of its first origin
	origins  int    // in memory
	unlogged bool   // changed since the last write
	unfolded bool   // changed since it was folded
}

// An origin is its own schedule.Queue. It is in memory while it has something
// to hand out, is changed and not folded, or was just looked at.
type origin struct {
	schedule.Origin[*origin]
	queue
	name    decorum.Origin
	host    *host
	fresh   *changes // since the last fold; nil if there are none
	folding *changes // that are being folded
	out     []slot   // leased: in the file, but not in the lanes
	seq     int64    // the last one given
	seen    int
	parked  int

	number   uint32
	unlogged bool // changed since the last write
	born     bool // perhaps not in the bucket names yet
	cached   bool // is among Store.heads
}

// find returns the state of an origin; nil if it was never met.
func (s *Store) find(tx *bbolt.Tx, name decorum.Origin) (*origin, error) {
	if o := s.origins[name]; o != nil {
		return o, nil
	}
	number, err := s.numberOf(tx, name)
	if number == nil || err != nil {
		return nil, err
	}
	o, err := s.read(tx, number)
	if err != nil {
		return nil, err
	}
	if o.name != name {
		return nil, s.damaged("origin %v has the number of %v", name, o.name)
	}
	if err := s.admit(tx, o); err != nil {
		return nil, err
	}
	s.entertain(o)
	return o, nil
}

// numberOf returns the number of an origin in the file, as in keys; nil if the file
// lacks the origin.
func (s *Store) numberOf(tx *bbolt.Tx, name decorum.Origin) ([]byte, error) {
	number, err := bucketOf(tx, bucketNames).get(originKey(name.String()))
	if err == nil && number != nil && len(number) != 4 {
		err = record.ErrDamaged
	}
	if err != nil {
		return nil, s.damaged("number of origin %v: %v", name, err)
	}
	return number, nil
}

// read returns an origin as it is in the file, and without its host.
func (s *Store) read(tx *bbolt.Tx, number []byte) (*origin, error) {
	value, err := bucketOf(tx, bucketOrigins).get(number)
	if err != nil {
		return nil, s.damaged("origin %x: %v", number, err)
	}
	if len(number) != 4 || value == nil {
		return nil, s.damaged("origin %x is missing", number)
	}
	o := &origin{number: binary.BigEndian.Uint32(number)}
	if err := parseOrigin(value, o); err != nil {
		return nil, s.damaged("origin %x: %v", number, err)
	}
	return o, nil
}

// meet returns the state of an origin, new if it was never met.
func (s *Store) meet(tx *bbolt.Tx, name decorum.Origin) (*origin, error) {
	o, err := s.find(tx, name)
	if o != nil || err != nil {
		return o, err
	}
	// name may be a part of a long URL, which it would keep in memory.
	name, _ = record.ParseOrigin(strings.Clone(name.String()))
	o = &origin{name: name, number: s.last + 1, born: true}
	if err := s.admit(tx, o); err != nil {
		return nil, err
	}
	s.last = o.number
	s.touch(o)
	return o, nil
}

// admit takes an origin into memory, and its host. If the host is idle, its other
// origins come with it.
func (s *Store) admit(tx *bbolt.Tx, o *origin) error {
	if h := s.hosts[o.name.Host()]; h != nil {
		s.link(o, h)
		return nil
	}
	h := &host{name: o.name.Host()}
	if err := s.readHost(tx, h, o.number); err != nil {
		return err
	}
	idle := s.turns.Idle(h.number)
	if idle == nil {
		s.hosts[h.name] = h
		s.link(o, h)
		return nil
	}
	return s.wakeHost(tx, h, idle, o)
}

// link makes o an origin of a host that is in memory.
func (s *Store) link(o *origin, h *host) {
	h.origins++
	o.host, o.Host, o.Queue = h, &h.Host, o
	s.origins[o.name] = o
	s.numbers[o.number] = o
}

// readHost reads number and clock of a host. first is the number of one of its
// origins: it is the host's if that has none. After an unclean stop the end of
// the last visit may be what was lost: then it rests.
func (s *Store) readHost(tx *bbolt.Tx, h *host, first uint32) error {
	h.number = first
	number, err := bucketOf(tx, bucketNames).get(hostKey(h.name))
	if err != nil || number != nil && len(number) != 4 {
		return s.damaged("host %q: number %x", h.name, number)
	}
	if number != nil {
		h.number = binary.BigEndian.Uint32(number)
	}
	h.Rest(s.floor)
	value, err := bucketOf(tx, bucketHosts).get(numberKey(h.number))
	if err != nil {
		return s.damaged("host %q: %v", h.name, err)
	}
	if value != nil {
		clock, err := record.ParseHost(value)
		if err != nil {
			return s.damaged("host %q: %v", h.name, err)
		}
		s.wind(h, clock)
	}
	return nil
}

// wind sets the clock of a host as it was when the store was opened, or before.
func (s *Store) wind(h *host, clock schedule.Clock) {
	h.Set(clock)
	if !s.crashed.IsZero() {
		h.Rest(s.crashed.Add(h.Gap))
	}
}

// entertain keeps an origin for a while, though it may hold nothing.
func (s *Store) entertain(o *origin) {
	s.guests = append(s.guests, o)
	for len(s.guests) > min(maxRecentOrigins, s.maxHostsInMemory()) {
		s.dismiss(s.guests[0])
		s.guests = s.guests[1:]
	}
}

// dismiss forgets an origin that holds nothing, and its host with the last of
// its origins: they are in the file. One that holds something it evicts, where
// there are many hosts.
func (s *Store) dismiss(o *origin) {
	if s.numbers[o.number] != o || !o.isFolded() {
		return
	}
	if o.isEmpty() {
		s.unlink(o)
	}
	if o.host.origins > 0 && len(s.hosts) > s.maxHostsInMemory() {
		s.evict(o.host)
	}
}

// isFolded reports whether the file holds all state of o in its place.
func (o *origin) isFolded() bool {
	return o.fresh == nil && o.folding == nil && !o.unlogged && len(o.out) == 0
}

// unlink removes o from memory, and its host with the last of its origins.
func (s *Store) unlink(o *origin) {
	delete(s.origins, o.name)
	delete(s.numbers, o.number)
	if o.host.origins--; o.host.origins == 0 {
		delete(s.hosts, o.host.name)
	}
}

// put puts e into a lane of o.
func (s *Store) put(o *origin, id schedule.Lane, at int64, e *storage.Entry) {
	o.seq++
	p := place{at: at, seq: o.seq}
	if id.Stacked() {
		p.seq = -o.seq
	}
	s.putSlot(o, slot{id, p}, s.sealEntry(o, slot{id, p}, e))
	switch id {
	case parked:
		o.parked++
		s.parked++
		return
	case schedule.Resting:
		s.rest(o, printOfEntry(e), p)
	}
	l := o.lane(id)
	s.cached -= l.weight
	l.put(p, s.entry, s.window())
	s.cached += l.weight
	o.Count(id, 1)
}

// sealEntry returns the record of an entry of o with its checksum, as the file holds it
// in a slot. It is valid until the next call.
func (s *Store) sealEntry(o *origin, at slot, e *storage.Entry) []byte {
	s.entry = appendSum(record.AppendEntry(s.entry[:0], e), appendURLKey(s.key[:0], o.number, at))
	return s.entry
}

// parseEntry reads the record of a slot of an origin. It returns an error if the record
// was changed.
func parseEntry(sealed []byte, number uint32, name decorum.Origin, at slot) (storage.Entry, error) {
	var key [urlKeyLen]byte
	value, err := checkSum(appendURLKey(key[:0], number, at), sealed)
	if err != nil {
		return storage.Entry{}, fmt.Errorf("a URL of %v: %w", name, err)
	}
	return record.ParseEntry(value, name)
}

// rest notes in the index where the page of the fingerprint rests.
func (s *Store) rest(o *origin, p print, at place) {
	s.redo.rest(o.number, p, at)
	s.touch(o).rest(p, at)
	s.held++
}

// stored returns how many URLs of the lane are in the file, or will be, and
// the time of the first: the leased ones are there too.
func (o *origin) stored(l *lane) (n int, first int64) {
	n, first = l.n, l.first
	for _, k := range o.out {
		if k.lane != l.lane {
			continue
		}
		if n == 0 || k.at < first {
			first = k.at
		}
		n++
	}
	return n, first
}

// window returns how many URLs of a lane are kept at hand: fewer if there are
// many origins, which would push each other's out unused.
func (s *Store) window() int {
	return max(2, min(s.opts.Window, s.maxCachedWeight()/(len(s.origins)+1)))
}

// trim forgets the heads of queues that were read first while there are too many.
func (s *Store) trim() {
	for maxWeight := s.maxCachedWeight(); s.cached > maxWeight || len(s.heads) > maxWeight; {
		s.behead(s.heads[0])
		s.heads = s.heads[1:]
	}
}

// release removes o, which becomes idle, from heads, which would keep it in memory.
func (s *Store) release(o *origin) {
	if !o.cached {
		return
	}
	s.behead(o)
	if s.stale++; s.stale > len(s.heads)/2 {
		s.heads = slices.DeleteFunc(s.heads, func(o *origin) bool { return !o.cached })
		s.stale = 0
	}
}

// behead forgets the heads of o's lanes: one that is missed is read again.
func (s *Store) behead(o *origin) {
	o.cached = false
	for i := range o.lanes {
		s.cached -= o.lanes[i].weight
		o.lanes[i].setHead(nil)
	}
}

// fill reads the head of a lane. What was counted and is not there is not
// waited for any longer.
func (s *Store) fill(tx *bbolt.Tx, o *origin, l *lane) {
	items, _ := s.scan(tx, o, slot{l.lane, l.low}, s.window())
	s.cached -= l.weight
	l.setHead(items)
	s.cached += l.weight
	if !o.cached {
		o.cached = true
		s.heads = append(s.heads, o)
	}
	if l.ready() {
		return
	}
	s.opts.Damaged(s.damaged("queue of %v: %d URLs are counted, %d found", o.name, l.n, len(l.head)))
	o.Count(l.lane, len(l.head)-l.n)
	l.n = len(l.head)
	s.touch(o)
}

// scan returns the first URLs of a lane from the place on that are not leased,
// at most max, fewer where they are long, and whether there may be more.
func (s *Store) scan(tx *bbolt.Tx, o *origin, from slot, max int) (items []item, more bool) {
	weight := 0
	s.slots(tx, o, from, func(c change) bool {
		if !slices.Contains(o.out, c.slot) {
			items = append(items, item{c.place, slices.Clone(c.value)})
			weight += sizeOf(c.value)
		}
		more = len(items) == max || isHeavy(items, weight, max)
		return !more
	})
	return items, more
}

// view reads the file. It requires the lock. After a fault it reads no more: bbolt may
// hold its own locks for good, and a call that needs them would never return.
func (s *Store) view(read func(*bbolt.Tx) error) error {
	if s.faulted {
		return s.failed
	}
	err := guard(func() error { return s.db.View(read) })
	if errors.Is(err, errFault) {
		s.fault(err)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	return nil
}
