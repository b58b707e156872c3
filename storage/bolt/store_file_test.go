package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// openStoreFile opens a storeFile without a store.
func openStoreFile(t *testing.T, path string) *storeFile {
	t.Helper()
	f := &storeFile{path: path, status: newWriteStatus(path, func(error) {})}
	must(t, f.open(true, f.prepare))
	return f
}

// TestStoreFileClose: close marks a file as clean only if the last write succeeded.
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

// TestOpenReplacedFile: a file that is replaced while it is opened is opened again, maxOpenTries times.
func TestOpenReplacedFile(t *testing.T) {
	for _, tt := range []struct {
		replaced int // how often
		want     error
	}{{1, nil}, {maxOpenTries - 1, nil}, {maxOpenTries, errReplaced}} {
		path := filepath.Join(t.TempDir(), "frontier.db")
		must(t, openStoreFile(t, path).close())
		tries := 0
		db, err := openUnreplaced(path, bbolt.Options{
			OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
				file, err := os.OpenFile(name, flag, perm)
				if tries++; tries <= tt.replaced { // as Compact does before it releases the lock
					must(t, os.WriteFile(path+".new", must1(os.ReadFile(path)), perm))
					must(t, os.Rename(path+".new", path))
				}
				return file, err
			}})
		if want := min(tt.replaced+1, maxOpenTries); !errors.Is(err, tt.want) || tries != want {
			t.Errorf("replaced %d times: %d tries, %v; want %d, %v", tt.replaced, tries, err, want, tt.want)
		}
		if err != nil {
			continue
		}
		must(t, db.Update(func(tx *bbolt.Tx) error { return writeMeta(tx, map[string][]byte{"k": {1}}) }))
		must(t, db.Close())
		f := openStoreFile(t, path)
		must(t, f.view(func(tx *bbolt.Tx) error {
			if tx.Bucket([]byte(bucketMeta)).Get([]byte("k")) == nil {
				t.Error("the change is lost")
			}
			return nil
		}))
		must(t, f.close())
	}
}

// TestStoreFileFault: after a fault during a read, view does not call bbolt.
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

// TestDamageReporter: a damaged place is reported once, and at most maxReports places are remembered.
func TestDamageReporter(t *testing.T) {
	var reported []string
	d := damageReporter{path: "a.db", onDamaged: func(err error) { reported = append(reported, err.Error()) }}
	d.reportOnce("url 1", "record %d", 1)
	d.reportOnce("url 1", "record %d", 1)
	d.reportOnce("url 2", "record %d", 2)
	d.reportQuarantinedURL(errors.New("bad"))
	want := []string{"a.db is damaged: record 1", "a.db is damaged: record 2",
		"a.db: a damaged URL record is skipped: bad"}
	if !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	for n := range 2 * maxReports {
		d.reportOnce(fmt.Sprint(n), "n")
	}
	if len(d.reported) > maxReports {
		t.Errorf("%d places are remembered, want at most %d", len(d.reported), maxReports)
	}
	if err, want := d.errorf("log: %d", 7), "a.db is damaged: log: 7: restore it from a backup, or move it away to "+
		"start over"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
