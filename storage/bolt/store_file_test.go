package bolt

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// openStoreFile opens a file without a store.
func openStoreFile(t *testing.T, path string) *storeFile {
	t.Helper()
	f := &storeFile{path: path, status: newWriteStatus(path, func(error) {})}
	must(t, f.open(true, f.prepare))
	return f
}

// A file is marked as clean if it is closed after a write that succeeded, and only then.
func TestStoreFileClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "frontier.db")
	f := openStoreFile(t, path)
	must(t, f.update(func(tx *bbolt.Tx) error { return writeMeta(tx, map[string][]byte{keyClean: nil}) }))
	f.status.recordAttempt(syscall.ENOSPC)
	if err := f.close(); !errors.Is(err, storage.ErrWriteStalled) {
		t.Errorf("close after a failed write: %v, want %v", err, storage.ErrWriteStalled)
	}
	for _, wantClean := range []bool{false, true} {
		f = openStoreFile(t, path)
		must(t, f.view(func(tx *bbolt.Tx) error {
			if clean := tx.Bucket([]byte(bucketMeta)).Get([]byte(keyClean)) != nil; clean != wantClean {
				t.Errorf("clean: %t, want %t", clean, wantClean)
			}
			return nil
		}))
		must(t, f.close())
	}
}

// After a fault during a read, no call reaches bbolt.
func TestStoreFileFault(t *testing.T) {
	f := openStoreFile(t, filepath.Join(t.TempDir(), "frontier.db"))
	if err := f.view(func(*bbolt.Tx) error { panic("page 7: invalid type") }); !errors.Is(err, errFault) {
		t.Errorf("view: %v, want %v", err, errFault)
	}
	err := f.view(func(*bbolt.Tx) error { t.Error("read after a fault"); return nil })
	if !errors.Is(err, storage.ErrFailed) || !f.status.hasFailed() {
		t.Errorf("view after a fault: %v, want %v", err, storage.ErrFailed)
	}
	must(t, f.closeWithoutBbolt())
}
