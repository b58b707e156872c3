package disk

import "slices"

// FileSize returns the current size of a file, in bytes.
func (d *Disk) FileSize(n *Node) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(n.data)
}

// Read reads up to len(b) bytes of a file at an offset, and returns their number, which is 0 behind
// the end. name selects injected faults.
func (d *Disk) Read(n *Node, name string, b []byte, offset int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.injectedError(Read, name); err != nil {
		return 0, err
	}
	if offset >= int64(len(n.data)) {
		return 0, nil
	}
	return copy(b, n.data[offset:]), nil
}

// Write writes b to a file at an offset. name selects injected faults.
func (d *Disk) Write(n *Node, name string, b []byte, offset int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.injectedError(Write, name); err != nil {
		return err
	}
	end := int(offset) + len(b)
	if end > len(n.data) {
		n.resize(end)
	}
	copy(n.data[offset:], b)
	for block := int(offset) / BlockSize; block*BlockSize < end; block++ {
		n.dirtyBlocks[block] = true
	}
	return nil
}

// Truncate sets the size of a file. name selects injected faults.
func (d *Disk) Truncate(n *Node, name string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.injectedError(Truncate, name); err != nil {
		return err
	}
	n.resize(int(size))
	return nil
}

// resize sets the size of a file. If the file grows again later, the bytes behind size are zeros.
// The caller holds Disk.mu.
func (n *Node) resize(size int) {
	n.unsyncedSizes = append(n.unsyncedSizes, len(n.data))
	if size <= len(n.data) {
		if size%BlockSize != 0 {
			n.dirtyBlocks[size/BlockSize] = true
		}
		for block := (size + BlockSize - 1) / BlockSize; block*BlockSize < len(n.data); block++ {
			n.dirtyBlocks[block] = true
		}
		clear(n.data[size:])
		n.data = n.data[:size]
		return
	}
	n.data = append(n.data, make([]byte, size-len(n.data))...)
}

// SyncNode makes the content of a file, or the names in a directory, stable. It also writes the
// journal: see the package comment. name selects injected faults.
func (d *Disk) SyncNode(n *Node, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.injectedError(Sync, name); err != nil {
		n.dirtyBlocks, n.unsyncedSizes = map[int]bool{}, nil // lost, unless they are written again
		return err
	}
	d.syncJournal(n)
	if n.IsDir {
		return nil
	}
	n.syncedData = resizeBytes(n.syncedData, len(n.data))
	for block := range n.dirtyBlocks {
		n.syncBlock(block, n.data)
	}
	n.dirtyBlocks, n.unsyncedSizes = map[int]bool{}, nil
	return nil
}

// syncBlock copies a block of from to the stable content, as far as its size allows.
func (n *Node) syncBlock(block int, from []byte) {
	begin := block * BlockSize
	if begin >= len(n.syncedData) {
		return
	}
	to := n.syncedData[begin:min(begin+BlockSize, len(n.syncedData))]
	clear(to)
	if begin < len(from) {
		copy(to, from[begin:])
	}
}

// resizeBytes returns b with the given size. Bytes behind the old content are zeros.
func resizeBytes(b []byte, size int) []byte {
	if size <= len(b) {
		clear(b[size:])
		return b[:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

// CurrentContent returns a copy of the current content of a file.
func (d *Disk) CurrentContent(n *Node) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(n.data)
}

// DamageFile replaces the content of a file with the result of damage, both the current and the
// stable content, as a defective disk would.
func (d *Disk) DamageFile(n *Node, damage func([]byte) []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n.data = damage(n.data)
	n.syncedData, n.dirtyBlocks, n.unsyncedSizes = slices.Clone(n.data), map[int]bool{}, nil
}
