package disk

import (
	"strings"
	"syscall"
)

// An Op is a kind of operation that can fail.
type Op string

// Ops.
const (
	Read     Op = "read" // one that fails under a mapping raises SIGBUS
	Write    Op = "write"
	Sync     Op = "fsync"
	Rename   Op = "rename"
	Truncate Op = "truncate"
)

// A Fault makes operations fail with EIO.
type Fault struct {
	Op    Op
	Name  string // part of the name of the file; empty: of any file
	After int    // so many operations succeed first
	Times int    // so many fail then; negative: all do

	hit int // operations that failed
}

// Inject makes operations fail from now on.
func (d *Disk) Inject(f Fault) *Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, &f)
	return &f
}

// Heal ends all faults.
func (d *Disk) Heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

// Hits returns how many operations a fault has made fail.
func (d *Disk) Hits(f *Fault) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f.hit
}

// fail returns the error that an operation on a file fails with, if it does.
func (d *Disk) fail(op Op, name string) error {
	for _, f := range d.faults {
		if f.Op != op || !strings.Contains(name, f.Name) {
			continue
		}
		switch {
		case f.After > 0:
			f.After--
		case f.Times != 0:
			f.Times--
			f.hit++
			return syscall.EIO
		}
	}
	return nil
}
