package disk

import (
	"strings"
	"syscall"
)

// An OpKind is a kind of operation that can fail.
type OpKind string

// Ops.
const (
	Read     OpKind = "read" // one that fails under a mapping raises SIGBUS
	Write    OpKind = "write"
	Sync     OpKind = "fsync"
	Rename   OpKind = "rename"
	Truncate OpKind = "truncate"
)

// An IOErrorRule makes operations fail with EIO.
type IOErrorRule struct {
	Op         OpKind
	NamePart   string // part of the name of the file; empty: of any file
	AfterCount int    // so many operations succeed first
	FailCount  int    // so many fail then; negative: all do

	failedOpCount int // operations that failed
}

// InjectFault makes operations fail from now on.
func (d *Disk) InjectFault(f IOErrorRule) *IOErrorRule {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, &f)
	return &f
}

// ClearFaults ends all faults.
func (d *Disk) ClearFaults() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

// FailedOpCount returns how many operations a fault has made fail.
func (d *Disk) FailedOpCount(f *IOErrorRule) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f.failedOpCount
}

// injectedError returns the error that an operation on a file fails with, if it does.
func (d *Disk) injectedError(op OpKind, name string) error {
	for _, f := range d.faults {
		if f.Op != op || !strings.Contains(name, f.NamePart) {
			continue
		}
		switch {
		case f.AfterCount > 0:
			f.AfterCount--
		case f.FailCount != 0:
			f.FailCount--
			f.failedOpCount++
			return syscall.EIO
		}
	}
	return nil
}
