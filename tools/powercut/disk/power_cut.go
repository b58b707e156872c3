package disk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Cut ends the power, and leaves what the disk may hold then, by chance. No process may
// use the disk meanwhile: nodes that were open are not those of the disk any more.
func (d *Disk) Cut(chance *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutJournal(chance)
	d.journal, d.faults = nil, nil
	// How likely it is that what is not stable was written: all, nothing and half of it
	// are as likely as all that is in between.
	likely := [...]float64{0, 0.5, 1, chance.Float64()}[chance.IntN(4)]
	cutNode(d.root, chance, likely, map[*Node]bool{})
}

// cutJournal makes stable what was written of the journal: each directory's own, if the
// disk is Strict.
func (d *Disk) cutJournal(chance *rand.Rand) {
	if !d.Strict {
		for _, c := range d.journal[:chance.IntN(len(d.journal)+1)] {
			setNames(c.dir.stableNames, c.names)
		}
		return
	}
	ended := map[*Node]bool{}
	for _, c := range d.journal {
		if ended[c.dir] = ended[c.dir] || chance.IntN(3) == 0; !ended[c.dir] {
			setNames(c.dir.stableNames, c.names)
		}
	}
}

// cutNode leaves of a node, and what is in it, what the disk holds.
func cutNode(n *Node, chance *rand.Rand, likely float64, done map[*Node]bool) {
	if done[n] {
		return
	}
	done[n] = true
	if !n.Dir {
		n.cut(chance, likely)
		return
	}
	n.names = map[string]*Node{}
	setNames(n.names, n.stableNames)
	for _, name := range slices.Sorted(maps.Keys(n.names)) { // so that the same chance does the same
		cutNode(n.names[name], chance, likely, done)
	}
}

// cut leaves of a file what the disk holds: a size that it has had, and some of the
// blocks that were written.
func (n *Node) cut(chance *rand.Rand, likely float64) {
	if len(n.dirty) > 0 || len(n.sizes) > 0 {
		sizes := append(n.sizes, len(n.data))
		n.stable = resized(n.stable, sizes[chance.IntN(len(sizes))])
		for _, block := range slices.Sorted(maps.Keys(n.dirty)) {
			if chance.Float64() < likely {
				n.copyBlock(block, n.data)
			}
		}
	}
	n.data, n.dirty, n.sizes = slices.Clone(n.stable), map[int]bool{}, nil
}
