package disk

import (
	"strings"
	"syscall"
)

// An OpKind is a kind of operation that can fail.
type OpKind string

// The operations that can fail.
const (
	Read     OpKind = "read" // a failing read of a mapped page raises SIGBUS in the process
	Write    OpKind = "write"
	Sync     OpKind = "fsync"
	Rename   OpKind = "rename"
	Truncate OpKind = "truncate"
)

// An IOErrorRule makes operations fail with EIO.
type IOErrorRule struct {
	Op         OpKind
	NamePart   string // part of the file's name; empty: any file
	AfterCount int    // number of operations that succeed first
	FailCount  int    // number of operations that then fail; negative: all

	failedOpCount int // number of operations that have failed
}

// InjectFault makes operations fail by a copy of f, until CutPower or ClearFaults. The result is for
// FailedOpCount.
func (d *Disk) InjectFault(f IOErrorRule) *IOErrorRule {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, &f)
	return &f
}

// ClearFaults ends all injected faults.
func (d *Disk) ClearFaults() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

// FailedOpCount returns how many operations have failed by f, a result of InjectFault.
func (d *Disk) FailedOpCount(f *IOErrorRule) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return f.failedOpCount
}

// injectedError returns the error with which an operation on a file fails, or nil. The caller holds
// d.mu.
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
