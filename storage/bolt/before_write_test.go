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

// What must be on the disk before the changes is put there before they are
// written; while that fails they are not, and then they are.
func TestBeforeWrite(t *testing.T) {
	dir := t.TempDir()
	var broken atomic.Bool
	var calls, writes atomic.Int64
	s := openStore(t, dir, Options{FlushEvery: time.Hour, noSync: true, BeforeWrite: func() error {
		if calls.Add(1) != writes.Load()+1 {
			t.Error("Before was not called before each write")
		}
		if broken.Load() {
			writes.Add(1) // this one is not made
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
		t.Errorf("Flush: %v, want ErrStalled", err)
	}
	if _, _, err := s.Lease(t.Context(), time.Now(), time.Minute, 1); !errors.Is(err, storage.ErrWriteStalled) {
		t.Errorf("Lease: %v, want ErrStalled", err)
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

// Committed is told of writes that went well, and of no others.
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
		t.Errorf("told of %d writes, want 1", n)
	}
	fails.Store(true)
	addEntries(t, s, newEntry(t, "https://a.example/2"))
	if err := s.Flush(t.Context()); err == nil {
		t.Error("a write that fails is no error")
	}
	if n := commits.Load() - before; n != 1 {
		t.Errorf("told of %d writes, want 1: the other failed", n)
	}
	fails.Store(false)
	must(t, s.Close())
}
