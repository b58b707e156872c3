package bolt

import "go.etcd.io/bbolt"

// A change is what becomes of a slot.
type change struct {
	slot
	value []byte // nil deletes
}

func (c change) compare(d change) int { return c.slot.compare(d.slot) }

// changes are those of one origin that are in the log, or on their way to it,
// and not in their place in the file.
type changes struct {
	urls  run[change]
	seen  run[print]
	notes map[string][]byte // nil deletes
	rests map[print]place   // nowhere deletes
	// size is about how many they are, long ones counted for several:
	// fingerprints, which are short and come with a URL, for none.
	size int
}

// sizeOf returns for how many changes one of a value counts.
func sizeOf(value []byte) int { return 1 + len(value)/256 }

func (c *changes) put(s slot, value []byte) {
	c.urls.put(change{s, value})
	c.size += sizeOf(value)
}

func (c *changes) see(p print) { c.seen.put(p) }

func (c *changes) note(key string, value []byte) {
	if c.notes == nil {
		c.notes = make(map[string][]byte)
	}
	c.notes[key] = value
	c.size += sizeOf(value)
}

func (c *changes) rest(p print, at place) {
	if c.rests == nil {
		c.rests = make(map[print]place)
	}
	c.rests[p] = at
	c.size++
}

// pages returns about how many pages of the file it takes to fold them.
func (c *changes) pages() int {
	return 3 + c.urls.len()/16 + c.seen.len()/64 + c.size/64
}

// layers are what is not in the file of an origin, the newest first.
func (o *origin) layers() []*changes {
	layers := make([]*changes, 0, 2)
	for _, c := range []*changes{o.fresh, o.folding} {
		if c != nil {
			layers = append(layers, c)
		}
	}
	return layers
}

// putSlot puts a URL into a slot of o.
func (s *Store) putSlot(o *origin, at slot, value []byte) {
	c := s.touch(o)
	c.put(at, s.redo.put(o.number, at, value))
	s.held += sizeOf(value)
}

// clearSlot deletes what is in a slot of o.
func (s *Store) clearSlot(o *origin, at slot) {
	c := s.touch(o)
	s.redo.delete(o.number, at)
	c.put(at, nil)
	s.held++
}

// touch takes note that o changes, and returns its changes.
func (s *Store) touch(o *origin) *changes {
	if !o.unlogged {
		o.unlogged = true
		s.unlogged = append(s.unlogged, o)
	}
	if o.fresh == nil {
		o.fresh = &changes{size: 1}
		s.held++
		s.dirty = append(s.dirty, o)
	}
	return o.fresh
}

// touchHost takes note that the host of o changes, and o with it.
func (s *Store) touchHost(o *origin) {
	s.touch(o)
	if h := o.host; !h.unlogged {
		h.unlogged = true
		s.hostsUnlogged = append(s.hostsUnlogged, h)
	}
	o.host.unfolded = true
}

// A source gives slots in order.
type source interface {
	peek() (change, bool)
	next()
}

// slotsFile is the bucket urls as a source, of one lane.
type slotsFile struct {
	cursor     *bbolt.Cursor
	origin     uint32
	lane       byte
	key, value []byte
}

func (f *slotsFile) peek() (change, bool) {
	number, s, ok := parseURLKey(f.key)
	if !ok || number != f.origin || byte(s.lane) != f.lane {
		return change{}, false
	}
	return change{s, f.value}, true
}

func (f *slotsFile) next() { f.key, f.value = f.cursor.Next() }

// slots calls yield with what is in a lane of o from the place on, until it
// returns false. Values are lent.
func (s *Store) slots(tx *bbolt.Tx, o *origin, from slot, yield func(change) bool) {
	var sources []source
	for _, c := range o.layers() {
		if c.urls.len() > 0 {
			sources = append(sources, c.urls.seek(change{slot: from}))
		}
	}
	file := &slotsFile{cursor: tx.Bucket([]byte(bucketURLs)).Cursor(), origin: o.number, lane: byte(from.lane)}
	file.key, file.value = file.cursor.Seek(appendURLKey(s.key[:0], o.number, from))
	sources = append(sources, file)
	for {
		first, ok := firstOf(sources, from)
		if !ok || first.value != nil && !yield(first) {
			return
		}
	}
}

// firstOf takes the first slot of the lane out of the sources. Where several
// have it, the first of them holds.
func firstOf(sources []source, from slot) (first change, ok bool) {
	for _, s := range sources {
		if c, any := s.peek(); any && c.lane == from.lane && (!ok || c.compare(first) < 0) {
			first, ok = c, true
		}
	}
	for _, s := range sources {
		if c, any := s.peek(); ok && any && c.compare(first) == 0 {
			s.next()
		}
	}
	return first, ok
}

// get returns what is in a slot; nil if nothing. It is lent.
func (s *Store) get(tx *bbolt.Tx, o *origin, at slot) []byte {
	for _, c := range o.layers() {
		if found, ok := c.urls.get(change{slot: at}); ok {
			return found.value
		}
	}
	return tx.Bucket([]byte(bucketURLs)).Get(appendURLKey(s.key[:0], o.number, at))
}
