package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// CutPower cuts the power: it replaces the content of the disk with one that may be left after a
// cut, chosen with rnd. It also ends all faults. No process may use the disk meanwhile. A node
// that has lost its name has left the disk.
func (d *Disk) CutPower(rnd *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applyJournalPrefix(rnd)
	d.journal, d.faults = nil, nil
	// Choose the share of unstable blocks that were written: with equal probability none, half,
	// all, or a random share.
	writeProbability := [...]float64{0, 0.5, 1, rnd.Float64()}[rnd.IntN(4)]
	loseUnsynced(d.root, rnd, writeProbability, map[*Node]bool{})
}

// applyJournalPrefix makes a random prefix of the journal stable, or with PerDirJournal a prefix of
// each directory's operations. The caller holds d.mu.
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

// loseUnsynced replaces the current content of a node, and of all nodes in it, with what is left
// after the cut. done has the nodes that it has visited.
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
	for _, name := range slices.Sorted(maps.Keys(n.entries)) { // so that the same seed has the same result
		loseUnsynced(n.entries[name], rnd, writeProbability, done)
	}
}

// loseSomeUnsyncedContent replaces the content of a file: it chooses a size that the file has had
// since its last sync, and writes each unsynced block with probability writeProbability.
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
