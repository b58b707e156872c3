package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// An AppendSyncTracker knows whether all that was appended to a file, or to one file after
// another, is on the disk, and has nothing more taken once that cannot be known.
//
// Who appends does so one write at a time, asks Err before and calls RecordWrite after each,
// and ends each file by SyncAndClose. Sync may be called at any time. An AppendSyncTracker must not be
// copied.
type AppendSyncTracker struct {
	ContentLabel string // was written, in errors: "lines of output"
	Remedy       string // what to do when it may be lost: "go on with --resume"

	syncMu        sync.Mutex   // held by the one Sync that goes on: who comes later must not overtake it
	mu            sync.Mutex   // of what follows
	dirtyFile     SyncableFile // of which something may not be on the disk; nil: of none
	dirtyFileSize int64        // of the whole records in dirty
	syncedFile    SyncableFile // the last file that Sync put on the disk; nil: none yet
	syncedBytes   int64        // bytes of synced on the disk
	failure       error
}

// A SyncableFile is what an AppendSyncTracker needs of an *os.File.
type SyncableFile interface {
	Sync() error
	Close() error
}

// Err returns why nothing may be written any more; nil: it may.
func (t *AppendSyncTracker) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// RecordWrite records that f was written to, and how many bytes of it are whole records. The
// caller has closed earlier files, or has synced them and no longer needs them.
func (t *AppendSyncTracker) RecordWrite(f SyncableFile, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirtyFile, t.dirtyFileSize = f, size
}

// SyncedBytes returns how many bytes of f, in whole records, Sync has put on the disk.
func (t *AppendSyncTracker) SyncedBytes(f SyncableFile) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f != t.syncedFile {
		return 0
	}
	return t.syncedBytes
}

// Sync returns when all is on the disk of which RecordWrite was told before. Others write
// meanwhile. When it has failed, it always fails, and so does Err: what the system
// has lost by then is not known, and asking again would not tell.
func (t *AppendSyncTracker) Sync() error {
	t.syncMu.Lock()
	defer t.syncMu.Unlock()
	f, size, err := t.takeDirtyFile()
	if f == nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return t.RecordFailure(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.syncedFile, t.syncedBytes = f, size
	return nil
}

// takeDirtyFile returns the file to sync, or nil, and its size.
func (t *AppendSyncTracker) takeDirtyFile() (SyncableFile, int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure != nil {
		return nil, 0, t.failure
	}
	f := t.dirtyFile
	t.dirtyFile = nil
	return f, t.dirtyFileSize, nil
}

// SyncAndClose closes f, unless it is closed, when what was written is on the disk. A failure
// is as one of Sync.
func (t *AppendSyncTracker) SyncAndClose(f SyncableFile) error {
	err := t.Sync()
	if closing := f.Close(); closing != nil && !errors.Is(closing, fs.ErrClosed) {
		err = t.RecordFailure(closing)
	}
	return err
}

// RecordFailure notes that what was written may be lost, and returns what Err does from now
// on. The cause is not wrapped: that of a full disk would pass, this does not.
func (t *AppendSyncTracker) RecordFailure(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure == nil {
		t.failure = fmt.Errorf("%s may not be on the disk: %v; look after the disk, and %s", t.ContentLabel, cause, t.Remedy)
	}
	return t.failure
}
