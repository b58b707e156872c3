package bolt

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A Store is a storage.Store in a file. Use Open.
type Store struct {
	opts Options
	path string
	db   *bbolt.DB
	// update is db.Update, which fails when the disk is full.
	update func(func(*bbolt.Tx) error) error

	kick  chan struct{} // asks the committer to write now
	quit  chan struct{} // closed to end it
	ended chan struct{} // closed by it

	mu       sync.Mutex // of all below
	closed   bool
	pending  *batch        // what the next write takes
	flushing *batch        // being written; nil if none is
	written  uint64        // number of the last batch in the file
	failed   error         // of the last write; nil if it went well
	attempt  chan struct{} // closed when a write has ended, well or not

	turns   schedule.Schedule[*origin]
	floor   time.Time // no host is due before
	hosts   map[string]*host
	origins map[decorum.Origin]*origin
	all     []*origin // in the order of their numbers, from 1
	leases  map[uint64]*lease
	token   uint64 // the last one given
	seen    int
	parked  int
	cached  int // items in the heads of lanes
	hand    int // of all: whose heads are forgotten next
}

var _ storage.Store = (*Store)(nil)

type host struct {
	schedule.Host[*origin]
	name string
}

// An origin is its own schedule.Queue.
type origin struct {
	schedule.Origin[*origin]
	queue
	name   decorum.Origin
	host   *host
	number uint32
	seq    int64 // the last one given
	seen   int
	parked lane
	out    []urlKey // leased: in the file, but not in the lanes
}

type lease struct {
	*schedule.Lease[*origin]
	entry storage.Entry
	key   urlKey
}

// lock locks s for a call that changes nothing on disk.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return storage.ErrClosed
	}
	return nil
}

// begin locks s for a call that changes something. It waits while too much is
// not written yet.
func (s *Store) begin(ctx context.Context) error {
	for {
		if err := s.lock(ctx); err != nil {
			return err
		}
		if s.pending.size < 2*s.opts.FlushSize {
			return nil
		}
		attempt, stalled := s.attempt, s.failed != nil
		s.mu.Unlock()
		if !stalled { // else the committer tries again in its own time
			s.wake()
		}
		select {
		case <-attempt:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end unlocks s after a call that began.
func (s *Store) end() {
	full := s.pending.size >= s.opts.FlushSize && s.flushing == nil && s.failed == nil
	s.trim()
	s.mu.Unlock()
	if full {
		s.wake()
	}
}

// origin returns the state of o, new if need be.
func (s *Store) origin(name decorum.Origin) *origin {
	o := s.origins[name]
	if o == nil {
		o = s.adopt(name, uint32(len(s.all)+1))
		s.pending.changedOrigin(o)
	}
	return o
}

// adopt makes the state of an origin that has none.
func (s *Store) adopt(name decorum.Origin, number uint32) *origin {
	h := s.hosts[name.Host()]
	if h == nil {
		h = &host{name: name.Host()}
		h.Rest(s.floor)
		s.hosts[h.name] = h
	}
	o := &origin{name: name, host: h, number: number, parked: lane{lane: parked, low: firstPlace}}
	o.Queue, o.Host = o, &h.Host
	s.origins[name] = o
	s.all = append(s.all, o)
	return o
}

// put puts e into a lane of o.
func (s *Store) put(o *origin, id schedule.Lane, at int64, e *storage.Entry) {
	o.seq++
	p := place{at: at, seq: o.seq}
	if id.Stacked() {
		p.seq = -o.seq
	}
	i := item{place: p, batch: s.pending.number, value: appendEntry(nil, e)}
	s.pending.putURL(urlKey{o.number, id, p}, i.value)
	s.pending.changedOrigin(o)
	if id == parked {
		o.parked.put(i, 0)
		s.parked++
		return
	}
	l := o.lane(id)
	s.cached -= len(l.head)
	l.put(i, s.window())
	s.cached += len(l.head)
	o.count(id, 1)
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

// trim forgets heads of queues while there are too many. It goes round the
// origins: a head that is missed is read again.
func (s *Store) trim() {
	for s.cached > s.opts.Cached {
		s.hand = (s.hand + 1) % len(s.all)
		lanes := s.all[s.hand].lanes
		for i := range lanes {
			s.cached -= len(lanes[i].head)
			lanes[i].head = nil
		}
	}
}

// window returns how many URLs of a lane are kept at hand: fewer if there are
// many origins, which would push each other's out unused.
func (s *Store) window() int {
	return max(2, min(s.opts.Window, s.opts.Cached/(len(s.all)+1)))
}

// fill reads the head of a lane.
func (s *Store) fill(o *origin, l *lane) error {
	items, err := s.scan(o, l, l.low, s.window())
	if err != nil {
		return err
	}
	s.cached += len(items) - len(l.head)
	l.head = items
	if !l.ready() {
		return s.damaged("queue of %v: %d URLs are counted, %d found", o.name, l.n, len(items))
	}
	return nil
}

// scan returns the first URLs of a lane from the place on, at most max: those
// in the file and those on their way to it.
func (s *Store) scan(o *origin, l *lane, from place, max int) ([]item, error) {
	var items []item
	err := s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketURLs)).Cursor()
		seek := urlKey{o.number, l.lane, from}.appendTo(nil)
		for key, value := c.Seek(seek); key != nil && len(items) < max; key, value = c.Next() {
			k, ok := parseURLKey(key)
			if !ok {
				return s.damaged("key %x", key)
			}
			if k.origin != o.number || k.lane != l.lane {
				return nil
			}
			if !s.overtaken(o, k) {
				items = append(items, item{place: k.place, value: slices.Clone(value)})
			}
		}
		return nil
	})
	at, _ := slices.BinarySearchFunc(l.fresh, from, byPlace)
	return merge(items, l.fresh[at:], max), err
}

// overtaken reports whether what the file says of k does not hold any more, or
// is in fresh, or is leased.
func (s *Store) overtaken(o *origin, k urlKey) bool {
	if _, ok := s.pending.urls[k]; ok {
		return true
	}
	if s.flushing != nil {
		if _, ok := s.flushing.urls[k]; ok {
			return true
		}
	}
	return slices.Contains(o.out, k)
}

// merge returns the first of both, at most max.
func merge(a, b []item, max int) []item {
	merged := make([]item, 0, min(max, len(a)+len(b)))
	for len(merged) < cap(merged) {
		if len(b) == 0 || len(a) > 0 && a[0].compare(b[0].place) < 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return merged
}
