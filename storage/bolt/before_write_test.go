package bolt

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// TestBeforeWrite: the store calls BeforeWrite before each write. While BeforeWrite fails, the store
// writes nothing; when it succeeds again, the store writes the changes.
func TestBeforeWrite(t *testing.T) {
	dir := t.TempDir()
	var broken atomic.Bool
	var calls, writes atomic.Int64
	s := openStore(t, dir, Options{FlushEvery: time.Hour, noSync: true, BeforeWrite: func() error {
		if calls.Add(1) != writes.Load()+1 {
			t.Error("BeforeWrite was not called before each write")
		}
		if broken.Load() {
			writes.Add(1) // counts the write that is not made
			return syscall.ENOSPC
		}
		return nil
	}})
	update := s.engine.file.update
	s.setUpdate(func(write func(*bbolt.Tx) error) error { writes.Add(1); return update(write) })
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	must(t, s.Flush(t.Context()))

	broken.Store(true)
	addEntries(t, s, newEntry(t, "https://a.example/2"))
	if err := s.Flush(t.Context()); !errors.Is(err, storage.ErrWriteStalled) {
		t.Errorf("Flush: %v, want ErrWriteStalled", err)
	}
	if _, _, err := s.Lease(t.Context(), time.Now(), time.Minute, 1); !errors.Is(err, storage.ErrWriteStalled) {
		t.Errorf("Lease: %v, want ErrWriteStalled", err)
	}
	broken.Store(false)
	must(t, s.Flush(t.Context()))
	stopStore(t, s, true)
	s = openStore(t, dir, Options{noSync: true})
	defer s.Close()
	if c, err := s.Counts(t.Context()); err != nil || c.QueuedURLs != 2 {
		t.Errorf("counts %+v (%v), want 2 queued", c, err)
	}
}

// TestOnCommitted: OnCommitted is called after each write that succeeded, and not after one that failed.
func TestOnCommitted(t *testing.T) {
	var commits atomic.Int64
	broken := syscall.ENOSPC
	var fails atomic.Bool
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, noSync: true,
		OnCommitted: func(took time.Duration) {
			if commits.Add(1); took <= 0 {
				t.Errorf("it took %v", took)
			}
		},
		BeforeWrite: func() error {
			if fails.Load() {
				return broken
			}
			return nil
		}})
	before := commits.Load()
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	must(t, s.Flush(t.Context()))
	if n := commits.Load() - before; n != 1 {
		t.Errorf("OnCommitted was called %d times, want 1", n)
	}
	fails.Store(true)
	addEntries(t, s, newEntry(t, "https://a.example/2"))
	if err := s.Flush(t.Context()); err == nil {
		t.Error("Flush returned no error after a failed write")
	}
	if n := commits.Load() - before; n != 1 {
		t.Errorf("OnCommitted was called %d times, want 1: the second write failed", n)
	}
	fails.Store(false)
	must(t, s.Close())
}
