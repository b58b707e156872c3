package disk

import (
	"io/fs"
	"strings"
	"sync"
	"syscall"
)

// BlockSize is the size of a block in bytes, which a cut writes whole or not at all.
const BlockSize = 4096

// A Disk is a file system in memory whose power can be cut. Its methods are safe for concurrent use.
type Disk struct {
	PerDirJournal bool // see the package comment; set it before the first operation

	// mu guards journal, faults and lastInode, and the fields of all Nodes except Inode and IsDir.
	mu        sync.Mutex
	root      *Node
	journal   []directoryChange // unstable directory operations, oldest first
	faults    []*IOErrorRule
	lastInode uint64 // Inode of the newest Node
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

	// In a directory: its current and its stable entries.
	entries, syncedEntries map[string]*Node

	// In a file: its current and its stable content.
	data, syncedData []byte
	dirtyBlocks      map[int]bool // blocks written since the last sync
	unsyncedSizes    []int        // sizes that the file has had since the last sync
}

// newNode returns an empty file or directory without a name. The caller holds d.mu, except in New.
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

// A directoryChange is one directory operation: new entries of a directory.
type directoryChange struct {
	dir            *Node
	changedEntries map[string]*Node // by name; nil: the name is removed
}

// applyAndJournalDirChange makes a directory operation, which stays in the journal until it is
// stable. The caller holds d.mu.
func (d *Disk) applyAndJournalDirChange(dir *Node, names map[string]*Node) {
	updateEntries(dir.entries, names)
	d.journal = append(d.journal, directoryChange{dir, names})
}

// updateEntries sets the entries in names, and deletes those that are nil there.
func updateEntries(to, names map[string]*Node) {
	for name, n := range names {
		if n == nil {
			delete(to, name)
		} else {
			to[name] = n
		}
	}
}

// syncJournal makes the operations in the journal stable: all, or with PerDirJournal those of dir.
// The caller holds d.mu.
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

// Lookup returns the node with a name in a directory, or nil.
func (d *Disk) Lookup(dir *Node, name string) *Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return dir.entries[name]
}

// ReadDir returns a copy of the entries of a directory.
func (d *Disk) ReadDir(dir *Node) map[string]*Node {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make(map[string]*Node, len(dir.entries))
	updateEntries(names, dir.entries)
	return names
}

// CreateNode creates an empty file or directory. It returns an error if the name exists.
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

// Rename renames a node, and replaces the node with the new name. A rename from one directory to
// another syncs the journals of both, and so is stable at once.
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
	// Between directories: two operations, stable together.
	d.applyAndJournalDirChange(from, map[string]*Node{name: nil})
	d.applyAndJournalDirChange(to, map[string]*Node{newName: n})
	d.syncJournal(from)
	d.syncJournal(to)
	return nil
}

// NodeAtPath returns the node at a path from the root, with slashes.
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

// WalkFiles calls f for each file, in any order, with its path from the root.
func (d *Disk) WalkFiles(f func(path string, n *Node)) {
	d.mu.Lock()
	files := map[string]*Node{}
	collectFiles(d.root, "", files)
	d.mu.Unlock()
	for path, n := range files {
		f(path, n)
	}
}

// collectFiles adds the files below dir to files, by path. The caller holds Disk.mu.
func collectFiles(dir *Node, path string, files map[string]*Node) {
	for name, n := range dir.entries {
		if n.IsDir {
			collectFiles(n, path+name+"/", files)
		} else {
			files[path+name] = n
		}
	}
}
