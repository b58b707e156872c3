// Package disk models what a disk holds after a power cut.
//
// A Disk is a file system in memory. Each file has two contents: the current one,
// which processes see, and the stable one, which is on the disk for certain. Sync
// makes the current content stable. Cut ends the power: it decides by chance what
// becomes of everything that is not stable yet.
//
// # What a cut may do
//
// The model is that of ext4 with data=writeback, which promises little:
//
//   - Of the blocks of 4 KiB that were written since the last Sync of their file any
//     subset is on the disk. A block is written whole or not at all.
//   - The size of a file is any that it has had since its last Sync, whatever became
//     of its blocks: where a block is missing below the size there are zeros, or what
//     was there before.
//   - Directory operations (create, remove, rename, make a directory) go through a
//     journal: those that are not stable are lost from some point on, in all
//     directories at once. A Sync of a file or of a directory writes the journal.
//     With Strict, each directory has a journal of its own, which only a Sync of that
//     directory writes, as POSIX has it.
//
// A Sync that fails leaves its blocks as they are for processes, and off the disk for
// good: a later Sync that succeeds does not write them, as on Linux.
package disk

import (
	"io/fs"
	"strings"
	"sync"
	"syscall"
)

// BlockSize is the number of bytes that reach the disk together.
const BlockSize = 4096

// A Disk is a file system in memory whose power can be cut. Its methods may be called
// at the same time.
type Disk struct {
	PerDirJournal bool // set before use: see the package comment

	mu        sync.Mutex // guards everything below, and all nodes
	root      *Node
	journal   []directoryChange
	faults    []*IOErrorRule
	lastInode uint64 // number of the next node
}

// New returns an empty disk.
func New() *Disk {
	d := &Disk{}
	d.root = d.newNode(true)
	return d
}

// Root returns the root directory.
func (d *Disk) Root() *Node { return d.root }

// A Node is a file or a directory.
type Node struct {
	Inode uint64
	IsDir bool

	// A directory: its current names, and those that are on the disk.
	entries, syncedEntries map[string]*Node

	// A file: its current content, and what is on the disk of it.
	data, syncedData []byte
	dirtyBlocks      map[int]bool // blocks that were written since the last Sync
	unsyncedSizes    []int        // that the file has had since the last Sync
}

func (d *Disk) newNode(dir bool) *Node {
	d.lastInode++
	n := &Node{Inode: d.lastInode, IsDir: dir}
	if dir {
		n.entries, n.syncedEntries = map[string]*Node{}, map[string]*Node{}
	} else {
		n.dirtyBlocks = map[int]bool{}
	}
	return n
}

// A directoryChange is one directory operation: what names of a directory stand for from then on.
type directoryChange struct {
	dir            *Node
	changedEntries map[string]*Node // nil: the name is gone
}

// applyAndJournalDirChange makes a directory operation, which the journal holds until it is stable.
func (d *Disk) applyAndJournalDirChange(dir *Node, names map[string]*Node) {
	updateEntries(dir.entries, names)
	d.journal = append(d.journal, directoryChange{dir, names})
}

func updateEntries(to, names map[string]*Node) {
	for name, n := range names {
		if n == nil {
			delete(to, name)
		} else {
			to[name] = n
		}
	}
}

// syncJournal makes directory operations stable: all, or, if the disk is PerDirJournal, those
// of one directory.
func (d *Disk) syncJournal(dir *Node) {
	var remaining []directoryChange
	for _, c := range d.journal {
		if d.PerDirJournal && c.dir != dir {
			remaining = append(remaining, c)
			continue
		}
		updateEntries(c.dir.syncedEntries, c.changedEntries)
	}
	d.journal = remaining
}

// Lookup returns what a name in a directory stands for, nil if nothing.
func (d *Disk) Lookup(dir *Node, name string) *Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return dir.entries[name]
}

// ReadDir returns what the names in a directory stand for.
func (d *Disk) ReadDir(dir *Node) map[string]*Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make(map[string]*Node, len(dir.entries))
	updateEntries(names, dir.entries)
	return names
}

// CreateNode makes an empty file or directory.
func (d *Disk) CreateNode(parent *Node, name string, dir bool) (*Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if parent.entries[name] != nil {
		return nil, syscall.EEXIST
	}
	n := d.newNode(dir)
	d.applyAndJournalDirChange(parent, map[string]*Node{name: n})
	return n, nil
}

// Remove removes a name. A directory must be empty.
func (d *Disk) Remove(parent *Node, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := parent.entries[name]
	switch {
	case n == nil:
		return syscall.ENOENT
	case len(n.entries) > 0:
		return syscall.ENOTEMPTY
	}
	d.applyAndJournalDirChange(parent, map[string]*Node{name: nil})
	return nil
}

// Rename renames, and replaces what has the new name. A rename from one directory to
// another is stable at once, with all that was done to directories before it.
func (d *Disk) Rename(from *Node, name string, to *Node, newName string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := from.entries[name]
	if n == nil {
		return syscall.ENOENT
	}
	if err := d.injectedError(Rename, name); err != nil {
		return err
	}
	if from == to {
		d.applyAndJournalDirChange(from, map[string]*Node{name: nil, newName: n})
		return nil
	}
	d.applyAndJournalDirChange(from, map[string]*Node{name: nil})
	d.applyAndJournalDirChange(to, map[string]*Node{newName: n})
	d.syncJournal(from)
	d.syncJournal(to)
	return nil
}

// NodeAtPath returns what a path from the root, with slashes, stands for.
func (d *Disk) NodeAtPath(path string) (*Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.root
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			continue
		}
		if n = n.entries[part]; n == nil {
			return nil, &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
		}
	}
	return n, nil
}

// WalkFiles calls f for each file, with its path from the root.
func (d *Disk) WalkFiles(f func(path string, n *Node)) {
	d.mu.Lock()
	files := map[string]*Node{}
	collectFiles(d.root, "", files)
	d.mu.Unlock()
	for path, n := range files {
		f(path, n)
	}
}

func collectFiles(dir *Node, path string, files map[string]*Node) {
	for name, n := range dir.entries {
		if n.IsDir {
			collectFiles(n, path+name+"/", files)
		} else {
			files[path+name] = n
		}
	}
}
