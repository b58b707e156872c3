package bolt

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
	notes               map[string][]byte                   // nil deletes
	revisitPositions    map[urlFingerprint]urlQueuePosition // nowhere deletes
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

func (c *originChanges) setURLRevisitPosition(p urlFingerprint, at urlQueuePosition) {
	if c.revisitPositions == nil {
		c.revisitPositions = make(map[urlFingerprint]urlQueuePosition)
	}
	c.revisitPositions[p] = at
	c.weightedChangeCount++
}

// estimateDBPages returns about how many pages of the file it takes to checkpoint them.
func (c *originChanges) estimateDBPages() int {
	return 3 + c.urls.len()/16 + c.seenURLFingerprints.len()/64 + c.weightedChangeCount/64
}

// pendingLayers are what is not in the file of an origin, the newest first.
func (o *residentOrigin) pendingLayers() []*originChanges {
	layers := make([]*originChanges, 0, 2)
	for _, c := range []*originChanges{o.pendingChanges, o.checkpointingChanges} {
		if c != nil {
			layers = append(layers, c)
		}
	}
	return layers
}
