package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CutPower ends the power, and leaves what the disk may hold then, by chance. No process may
// use the disk meanwhile: nodes that were open are not those of the disk any more.
func (d *Disk) CutPower(rnd *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applyJournalPrefix(rnd)
	d.journal, d.faults = nil, nil
	// How likely it is that what is not stable was written: all, nothing and half of it
	// are as likely as all that is in between.
	writeProbability := [...]float64{0, 0.5, 1, rnd.Float64()}[rnd.IntN(4)]
	loseUnsynced(d.root, rnd, writeProbability, map[*Node]bool{})
}

// applyJournalPrefix makes stable what was written of the journal: each directory's own, if the
// disk is PerDirJournal.
func (d *Disk) applyJournalPrefix(rnd *rand.Rand) {
	if !d.PerDirJournal {
		for _, c := range d.journal[:rnd.IntN(len(d.journal)+1)] {
			updateEntries(c.dir.syncedEntries, c.changedEntries)
		}
		return
	}
	lost := map[*Node]bool{}
	for _, c := range d.journal {
		if lost[c.dir] = lost[c.dir] || rnd.IntN(3) == 0; !lost[c.dir] {
			updateEntries(c.dir.syncedEntries, c.changedEntries)
		}
	}
}

// loseUnsynced leaves of a node, and what is in it, what the disk holds.
func loseUnsynced(n *Node, rnd *rand.Rand, writeProbability float64, done map[*Node]bool) {
	if done[n] {
		return
	}
	done[n] = true
	if !n.IsDir {
		n.loseSomeUnsyncedContent(rnd, writeProbability)
		return
	}
	n.entries = map[string]*Node{}
	updateEntries(n.entries, n.syncedEntries)
	for _, name := range slices.Sorted(maps.Keys(n.entries)) { // so that the same chance does the same
		loseUnsynced(n.entries[name], rnd, writeProbability, done)
	}
}

// loseSomeUnsyncedContent leaves of a file what the disk holds: a size that it has had, and some of the
// blocks that were written.
func (n *Node) loseSomeUnsyncedContent(rnd *rand.Rand, writeProbability float64) {
	if len(n.dirtyBlocks) > 0 || len(n.unsyncedSizes) > 0 {
		sizes := append(n.unsyncedSizes, len(n.data))
		n.syncedData = resizeBytes(n.syncedData, sizes[rnd.IntN(len(sizes))])
		for _, block := range slices.Sorted(maps.Keys(n.dirtyBlocks)) {
			if rnd.Float64() < writeProbability {
				n.syncBlock(block, n.data)
			}
		}
	}
	n.data, n.dirtyBlocks, n.unsyncedSizes = slices.Clone(n.syncedData), map[int]bool{}, nil
}
