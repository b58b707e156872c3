package bolt

import "go.etcd.io/bbolt"

// A slotChange is what becomes of a slot.
type slotChange struct {
	laneSlot
	value []byte // nil deletes
}

func (c slotChange) compare(d slotChange) int { return c.laneSlot.compare(d.laneSlot) }

// originChanges are those of one origin that are in the log, or on their way to it,
// and not in their place in the file.
type originChanges struct {
	urls                sortedSliceSet[slotChange]
	seenURLFingerprints sortedSliceSet[urlFingerprint]
	notes               map[string][]byte               // nil deletes
	revisitPositions    map[urlFingerprint]lanePosition // nowhere deletes
	// weightedChangeCount is about how many they are, long ones counted for several:
	// fingerprints, which are short and come with a URL, for none.
	weightedChangeCount int
}

// changeWeight returns for how many changes one of a value counts.
func changeWeight(value []byte) int { return 1 + len(value)/256 }

func (c *originChanges) putURL(s laneSlot, value []byte) {
	c.urls.put(slotChange{s, value})
	c.weightedChangeCount += changeWeight(value)
}

func (c *originChanges) addSeen(p urlFingerprint) { c.seenURLFingerprints.put(p) }

func (c *originChanges) setNote(key string, value []byte) {
	if c.notes == nil {
		c.notes = make(map[string][]byte)
	}
	c.notes[key] = value
	c.weightedChangeCount += changeWeight(value)
}

func (c *originChanges) setURLRevisitPosition(p urlFingerprint, at lanePosition) {
	if c.revisitPositions == nil {
		c.revisitPositions = make(map[urlFingerprint]lanePosition)
	}
	c.revisitPositions[p] = at
	c.weightedChangeCount++
}

// estimateDBPages returns about how many pages of the file it takes to fold them.
func (c *originChanges) estimateDBPages() int {
	return 3 + c.urls.len()/16 + c.seenURLFingerprints.len()/64 + c.weightedChangeCount/64
}

// pendingLayers are what is not in the file of an origin, the newest first.
func (o *loadedOrigin) pendingLayers() []*originChanges {
	layers := make([]*originChanges, 0, 2)
	for _, c := range []*originChanges{o.pendingChanges, o.checkpointingChanges} {
		if c != nil {
			layers = append(layers, c)
		}
	}
	return layers
}

// A slotCursor gives slots in order.
type slotCursor interface {
	peek() (slotChange, bool)
	advance()
}

// urlBucketSlotCursor is the bucket urls as a source, of one lane.
type urlBucketSlotCursor struct {
	cursor       *bbolt.Cursor
	originNumber uint32
	lane         byte
	key, value   []byte
}

func (f *urlBucketSlotCursor) peek() (slotChange, bool) {
	number, s, ok := parseURLKey(f.key)
	if !ok || number != f.originNumber || byte(s.lane) != f.lane {
		return slotChange{}, false
	}
	return slotChange{s, f.value}, true
}

func (f *urlBucketSlotCursor) advance() { f.key, f.value = f.cursor.Next() }

// forEachSlotInLane calls yield with what is in a lane of o from the place on, until it
// returns false. Values are lent.
func (s *Store) forEachSlotInLane(tx *bbolt.Tx, o *loadedOrigin, from laneSlot, yield func(slotChange) bool) {
	var sources []slotCursor
	for _, c := range o.pendingLayers() {
		if c.urls.len() > 0 {
			sources = append(sources, c.urls.cursorFrom(slotChange{laneSlot: from}))
		}
	}
	file := &urlBucketSlotCursor{cursor: tx.Bucket([]byte(bucketURLs)).Cursor(), originNumber: o.number, lane: byte(from.lane)}
	file.key, file.value = file.cursor.Seek(appendURLKey(s.keyBuf[:0], o.number, from))
	sources = append(sources, file)
	for {
		first, ok := takeFirstSlot(sources, from)
		if !ok || first.value != nil && !yield(first) {
			return
		}
	}
}

// takeFirstSlot takes the first slot of the lane out of the sources. Where several
// have it, the first of them holds.
func takeFirstSlot(sources []slotCursor, from laneSlot) (first slotChange, ok bool) {
	for _, s := range sources {
		if c, hasNext := s.peek(); hasNext && c.lane == from.lane && (!ok || c.compare(first) < 0) {
			first, ok = c, true
		}
	}
	for _, s := range sources {
		if c, hasNext := s.peek(); ok && hasNext && c.compare(first) == 0 {
			s.advance()
		}
	}
	return first, ok
}

// getQueuedURL returns what is in a slot; nil if nothing. It is lent.
func (s *Store) getQueuedURL(tx *bbolt.Tx, o *loadedOrigin, at laneSlot) []byte {
	for _, c := range o.pendingLayers() {
		if found, ok := c.urls.get(slotChange{laneSlot: at}); ok {
			return found.value
		}
	}
	return tx.Bucket([]byte(bucketURLs)).Get(appendURLKey(s.keyBuf[:0], o.number, at))
}
