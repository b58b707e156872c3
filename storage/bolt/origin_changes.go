package bolt

// A slotChange is the new content of a slot.
type slotChange struct {
	laneSlot
	value []byte // encoded entry with its checksum; nil deletes
}

func (c slotChange) compare(d slotChange) int { return c.laneSlot.compare(d.laneSlot) }

// originChanges are the changes of one origin that are in the log, or on their way to it, and not in
// their final place in the file.
type originChanges struct {
	urls                sortedSliceSet[slotChange]
	seenURLFingerprints sortedSliceSet[urlFingerprint]
	notes               map[string][]byte                   // by key; a nil value deletes
	revisitPositions    map[urlFingerprint]urlQueuePosition // noLanePosition deletes
	// weightedChangeCount is about the number of changes. Long values count several times:
	// see changeWeight. Fingerprints do not count, since they are short and come with a URL.
	weightedChangeCount int
}

// changeWeight returns how many times a change with the value counts: once, and once more for every
// 256 bytes.
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

func (c *originChanges) setURLRevisitPosition(p urlFingerprint, at urlQueuePosition) {
	if c.revisitPositions == nil {
		c.revisitPositions = make(map[urlFingerprint]urlQueuePosition)
	}
	c.revisitPositions[p] = at
	c.weightedChangeCount++
}

// changeCount returns weightedChangeCount, or the number of fingerprints if that is higher: those of an
// import come without URLs.
func (c *originChanges) changeCount() int {
	return max(c.weightedChangeCount, c.seenURLFingerprints.len())
}

// estimateDBPages returns about how many pages of the file a checkpoint of c changes.
func (c *originChanges) estimateDBPages() int {
	return 3 + c.urls.len()/16 + c.seenURLFingerprints.len()/64 + c.weightedChangeCount/64
}

// pendingLayers returns the changes of o that are not in their final place in the file, the newest
// first: where two have a key, the first applies.
func (o *residentOrigin) pendingLayers() []*originChanges {
	layers := make([]*originChanges, 0, 2)
	for _, c := range []*originChanges{o.pendingChanges, o.checkpointingChanges} {
		if c != nil {
			layers = append(layers, c)
		}
	}
	return layers
}
