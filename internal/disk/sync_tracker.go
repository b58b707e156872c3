package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// A Tail knows whether all that was appended to a file, or to one file after
// another, is on the disk, and has nothing more taken once that cannot be known.
//
// Who appends does so one write at a time, asks Err before and calls Wrote after each,
// and ends each file by Close. Sync may be called at any time. A Tail must not be
// copied.
type Tail struct {
	What   string // was written, in errors: "lines of output"
	Remedy string // what to do when it may be lost: "go on with --resume"

	syncing sync.Mutex // held by the one Sync that goes on: who comes later must not overtake it
	mu      sync.Mutex // of what follows
	dirty   File       // of which something may not be on the disk; nil: of none
	size    int64      // of the whole records in dirty
	synced  File       // the last file that Sync put on the disk; nil: none yet
	onDisk  int64      // bytes of synced on the disk
	broken  error
}

// A File is what a Tail needs of an *os.File.
type File interface {
	Sync() error
	Close() error
}

// Err returns why nothing may be written any more; nil: it may.
func (t *Tail) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// Wrote records that f was written to, and how many bytes of it are whole records. The
// caller has closed earlier files, or has synced them and no longer needs them.
func (t *Tail) Wrote(f File, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty, t.size = f, size
}

// OnDisk returns how many bytes of f, in whole records, Sync has put on the disk.
func (t *Tail) OnDisk(f File) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f != t.synced {
		return 0
	}
	return t.onDisk
}

// Sync returns when all is on the disk of which Wrote was told before. Others write
// meanwhile. When it has failed, it always fails, and so does Err: what the system
// has lost by then is not known, and asking again would not tell.
func (t *Tail) Sync() error {
	t.syncing.Lock()
	defer t.syncing.Unlock()
	f, size, err := t.take()
	if f == nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return t.Fail(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced, t.onDisk = f, size
	return nil
}

// take returns the file to sync, or nil, and its size.
func (t *Tail) take() (File, int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken != nil {
		return nil, 0, t.broken
	}
	f := t.dirty
	t.dirty = nil
	return f, t.size, nil
}

// Close closes f, unless it is closed, when what was written is on the disk. A failure
// is as one of Sync.
func (t *Tail) Close(f File) error {
	err := t.Sync()
	if closing := f.Close(); closing != nil && !errors.Is(closing, fs.ErrClosed) {
		err = t.Fail(closing)
	}
	return err
}

// Fail notes that what was written may be lost, and returns what Err does from now
// on. The cause is not wrapped: that of a full disk would pass, this does not.
func (t *Tail) Fail(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		t.broken = fmt.Errorf("%s may not be on the disk: %v; look after the disk, and %s", t.What, cause, t.Remedy)
	}
	return t.broken
}
