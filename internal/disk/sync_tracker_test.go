package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// A recordingFile records its syncs.
type recordingFile struct {
	*os.File
	t           *testing.T
	syncStarted chan struct{} // Sync sends to it when it begins; nil: Sync does not wait
	syncRelease chan struct{} // then Sync receives from it
	err         error         // result of Sync
	syncCount   atomic.Int64
	syncing     atomic.Bool
	durable     atomic.Int64 // bytes on the disk
}

func (w *recordingFile) Sync() error {
	w.syncing.Store(true)
	defer w.syncing.Store(false)
	w.syncCount.Add(1)
	info, err := w.Stat()
	if err != nil {
		return err
	}
	if w.syncStarted != nil {
		w.syncStarted <- struct{}{}
		<-w.syncRelease
	}
	if w.err != nil {
		return w.err
	}
	w.durable.Store(info.Size())
	return w.File.Sync()
}

func (w *recordingFile) Close() error {
	if w.syncing.Load() {
		w.t.Errorf("%s is closed while it is synced", w.Name())
	}
	return w.File.Close()
}

func createFile(t *testing.T, name string) *recordingFile {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &recordingFile{File: f, t: t}
}

// slowFile returns a file whose Sync reports its beginning and waits.
func slowFile(t *testing.T) *recordingFile {
	f := createFile(t, "slow")
	f.syncStarted, f.syncRelease = make(chan struct{}, 10), make(chan struct{})
	return f
}

func (w *recordingFile) writeText(t *testing.T, tracker *AppendSyncTracker, text string) {
	t.Helper()
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	info, err := w.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tracker.RecordWrite(w, info.Size())
}

// TestSync: each write is synced once, and Sync without a write does nothing.
func TestSync(t *testing.T) {
	var tracker AppendSyncTracker
	f := createFile(t, "lines")
	for i := range 3 {
		for range 2 {
			if err := tracker.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.syncCount.Load(); got != int64(i) {
			t.Fatalf("synced %d times after %d writes", got, i)
		}
		f.writeText(t, &tracker, "line\n")
	}
	for range 2 { // the second call has nothing to do
		if err := tracker.SyncAndClose(f); err != nil {
			t.Error(err)
		}
	}
	if f.durable.Load() != 15 || !errors.Is(f.File.Close(), fs.ErrClosed) {
		t.Errorf("%d bytes were on the disk when it was closed", f.durable.Load())
	}
}

// TestFailedSync: after a failure nothing is accepted, not even for another file, and the error
// does not suggest that it is temporary.
func TestFailedSync(t *testing.T) {
	for name, fail := range map[string]func(*AppendSyncTracker, *recordingFile) error{
		"Sync":  func(tracker *AppendSyncTracker, _ *recordingFile) error { return tracker.Sync() },
		"Close": func(tracker *AppendSyncTracker, f *recordingFile) error { return tracker.SyncAndClose(f) },
	} {
		tracker := AppendSyncTracker{ContentLabel: "lines of output", Remedy: "go on with --resume"}
		full := createFile(t, "full")
		full.err = syscall.ENOSPC
		full.writeText(t, &tracker, "line\n")
		err := fail(&tracker, full)
		if err == nil || errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: %v, want a permanent error", name, err)
		}
		for _, part := range []string{tracker.ContentLabel, syscall.ENOSPC.Error(), tracker.Remedy} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
		next := createFile(t, "next")
		next.writeText(t, &tracker, "line\n")
		again := tracker.RecordFailure(errors.New("another"))
		for _, got := range []error{tracker.Err(), tracker.Sync(), tracker.SyncAndClose(next), again} {
			if !errors.Is(got, err) {
				t.Errorf("%s: %v later, want %v", name, got, err)
			}
		}
		if next.syncCount.Load() != 0 || !errors.Is(next.File.Close(), fs.ErrClosed) {
			t.Errorf("%s: the next file was synced, or left open", name)
		}
	}
}

// TestFailedClose: an error of Close is a failure, because some systems report lost writes only
// then.
func TestFailedClose(t *testing.T) {
	var tracker AppendSyncTracker
	if err := tracker.SyncAndClose(failingCloser{}); err == nil || tracker.Err() == nil {
		t.Errorf("Close: %v, later %v", err, tracker.Err())
	}
}

type failingCloser struct{}

func (failingCloser) Sync() error  { return nil }
func (failingCloser) Close() error { return syscall.EIO }

// TestCloseWaits: a file is not closed while it is synced, and SyncAndClose returns the error of
// that sync.
func TestCloseWaits(t *testing.T) {
	for _, bad := range []error{nil, syscall.EIO} {
		var tracker AppendSyncTracker
		f := slowFile(t)
		f.err = bad
		f.writeText(t, &tracker, "line\n")
		var all sync.WaitGroup
		all.Go(func() {
			if err := tracker.Sync(); (err != nil) != (bad != nil) {
				t.Errorf("Sync: %v", err)
			}
		})
		<-f.syncStarted
		all.Go(func() {
			if err := tracker.SyncAndClose(f); (err != nil) != (bad != nil) {
				t.Errorf("%v: closed with %v", bad, err)
			}
		})
		close(f.syncRelease)
		all.Wait()
		if got := f.syncCount.Load(); got != 1 {
			t.Errorf("synced %d times", got)
		}
	}
}

// TestWritesGoOn: writes continue while a file is synced, and the next Sync is for them. No Sync
// returns before one that began earlier.
func TestWritesGoOn(t *testing.T) {
	var tracker AppendSyncTracker
	f := slowFile(t)
	f.writeText(t, &tracker, "first\n")
	var all sync.WaitGroup
	all.Go(func() {
		if err := tracker.Sync(); err != nil {
			t.Error(err)
		}
	})
	<-f.syncStarted
	if err := tracker.Err(); err != nil {
		t.Error(err)
	}
	var started sync.WaitGroup
	for range 8 {
		started.Add(1)
		all.Go(func() {
			started.Done()
			if err := tracker.Sync(); err != nil || f.durable.Load() < 6 {
				t.Errorf("Sync with %d bytes on the disk: %v", f.durable.Load(), err)
			}
		})
	}
	started.Wait()
	close(f.syncRelease)
	all.Wait()
	f.writeText(t, &tracker, "second\n")
	if err := tracker.Sync(); err != nil || f.durable.Load() != 13 || f.syncCount.Load() != 2 {
		t.Errorf("%d bytes, synced %d times: %v", f.durable.Load(), f.syncCount.Load(), err)
	}
}

// TestConcurrent: goroutines write to a sequence of files, and the line of each is on the disk when
// its Sync has returned.
func TestConcurrent(t *testing.T) {
	var tracker AppendSyncTracker
	var files []*recordingFile
	for i := range 20 {
		files = append(files, createFile(t, fmt.Sprint(i)))
	}
	var mu sync.Mutex // serialises writes
	lines, size := 0, int64(0)
	write := func(line string) (f *recordingFile, end int64) {
		mu.Lock()
		defer mu.Unlock()
		f = files[lines/20]
		n, err := f.WriteString(line)
		tracker.RecordWrite(f, size+int64(n))
		size, lines = size+int64(n), lines+1
		end = size
		if lines%20 == 0 { // the file is full
			err = errors.Join(err, tracker.SyncAndClose(f))
			size = 0
		}
		if err != nil {
			t.Error(err)
		}
		return f, end
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				file, end := write(fmt.Sprintf("line %d of %d\n", j, i))
				if err := tracker.Sync(); err != nil || file.durable.Load() < end {
					t.Errorf("%d of %d bytes are on the disk: %v", file.durable.Load(), end, err)
				}
			}
		})
	}
	all.Wait()
}
