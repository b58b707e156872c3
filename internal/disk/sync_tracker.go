package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// An AppendSyncTracker knows whether everything that was appended to a file, or to a sequence of
// files, is on the disk. After a failure it permits no more writes, because what is on the disk is
// unknown.
//
// The writer makes one write at a time, calls Err before each and RecordWrite after each, and ends
// each file with SyncAndClose. Any goroutine may call Sync at any time. An AppendSyncTracker must
// not be copied.
type AppendSyncTracker struct {
	ContentLabel string // what was written, for errors: "lines of output"
	Remedy       string // what to do after a failure, for errors: "go on with --resume"

	// syncMu serialises Sync: a later call, which finds dirtyFile nil, must not return before an
	// earlier call has synced it. It comes before mu.
	syncMu        sync.Mutex
	mu            sync.Mutex   // guards dirtyFile, dirtyFileSize, syncedFile, syncedBytes and failure
	dirtyFile     SyncableFile // file that may not be completely on the disk; nil: none
	dirtyFileSize int64        // bytes of whole records in dirtyFile
	syncedFile    SyncableFile // file that Sync last put on the disk; nil: none yet
	syncedBytes   int64        // bytes of syncedFile on the disk
	failure       error        // result of Err
}

// A SyncableFile has the methods of *os.File that an AppendSyncTracker needs.
type SyncableFile interface {
	Sync() error
	Close() error
}

// Err returns why nothing may be written any more, nil if writes are permitted.
func (t *AppendSyncTracker) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// RecordWrite records a write to f. The first size bytes of f are whole records. The caller has
// closed earlier files, or has synced them and no longer needs them.
func (t *AppendSyncTracker) RecordWrite(f SyncableFile, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirtyFile, t.dirtyFileSize = f, size
}

// SyncedBytes returns how many bytes of f, in whole records, Sync has put on the disk; 0 if f is
// not the last file that it synced.
func (t *AppendSyncTracker) SyncedBytes(f SyncableFile) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f != t.syncedFile {
		return 0
	}
	return t.syncedBytes
}

// Sync returns when everything recorded by earlier calls of RecordWrite is on the disk. Writes may
// continue meanwhile. After a failure, Sync and Err always fail: what the operating system has lost
// is unknown, and another fsync would not reveal it.
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

// takeDirtyFile returns the file to sync and its size, nil if there is none, and clears dirtyFile.
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

// SyncAndClose puts what was written on the disk and closes f, unless it is closed already. Its
// failures are permanent, like those of Sync.
func (t *AppendSyncTracker) SyncAndClose(f SyncableFile) error {
	err := t.Sync()
	if closing := f.Close(); closing != nil && !errors.Is(closing, fs.ErrClosed) {
		err = t.RecordFailure(closing)
	}
	return err
}

// RecordFailure records that written bytes may be lost, and returns the error that Err returns from
// now on. The error does not wrap cause: a full disk, for example, is temporary, but this failure
// is not.
func (t *AppendSyncTracker) RecordFailure(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failure == nil {
		t.failure = fmt.Errorf("%s may not be on the disk: %v; check the disk, and %s", t.ContentLabel, cause, t.Remedy)
	}
	return t.failure
}
