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

// A watched file tells what becomes of it.
type watched struct {
	*os.File
	t       *testing.T
	begun   chan struct{} // nil: Sync waits for nobody; else it says here that it has begun
	goOn    chan struct{} // and waits for this
	err     error         // of Sync
	syncs   atomic.Int64
	syncing atomic.Bool
	durable atomic.Int64 // how many bytes are on the disk
}

func (w *watched) Sync() error {
	w.syncing.Store(true)
	defer w.syncing.Store(false)
	w.syncs.Add(1)
	info, err := w.Stat()
	if err != nil {
		return err
	}
	if w.begun != nil {
		w.begun <- struct{}{}
		<-w.goOn
	}
	if w.err != nil {
		return w.err
	}
	w.durable.Store(info.Size())
	return w.File.Sync()
}

func (w *watched) Close() error {
	if w.syncing.Load() {
		w.t.Errorf("%s is closed while it is synced", w.Name())
	}
	return w.File.Close()
}

func create(t *testing.T, name string) *watched {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &watched{File: f, t: t}
}

// slow returns a file whose Sync says when it has begun, and waits.
func slow(t *testing.T) *watched {
	f := create(t, "slow")
	f.begun, f.goOn = make(chan struct{}, 10), make(chan struct{})
	return f
}

func (w *watched) put(t *testing.T, tail *Tail, text string) {
	t.Helper()
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	info, err := w.Stat()
	if err != nil {
		t.Fatal(err)
	}
	tail.Wrote(w, info.Size())
}

// TestSync: what was written is synced once; where nothing was, nothing is.
func TestSync(t *testing.T) {
	var tail Tail
	f := create(t, "lines")
	for i := range 3 {
		for range 2 {
			if err := tail.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.syncs.Load(); got != int64(i) {
			t.Fatalf("synced %d times after %d writes", got, i)
		}
		f.put(t, &tail, "line\n")
	}
	for range 2 { // the second time there is nothing left to do
		if err := tail.Close(f); err != nil {
			t.Error(err)
		}
	}
	if f.durable.Load() != 15 || !errors.Is(f.File.Close(), fs.ErrClosed) {
		t.Errorf("%d bytes were on the disk when it was closed", f.durable.Load())
	}
}

// TestFailedSync: after a failure nothing is taken any more, in another file
// neither, and nobody is told that it would pass.
func TestFailedSync(t *testing.T) {
	for name, fail := range map[string]func(*Tail, *watched) error{
		"Sync":  func(tail *Tail, _ *watched) error { return tail.Sync() },
		"Close": func(tail *Tail, f *watched) error { return tail.Close(f) },
	} {
		tail := Tail{What: "lines of output", Remedy: "go on with --resume"}
		full := create(t, "full")
		full.err = syscall.ENOSPC
		full.put(t, &tail, "line\n")
		err := fail(&tail, full)
		if err == nil || errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: %v, want an error for good", name, err)
		}
		for _, part := range []string{tail.What, syscall.ENOSPC.Error(), tail.Remedy} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
		next := create(t, "next")
		next.put(t, &tail, "line\n")
		again := tail.Fail(errors.New("another"))
		for _, got := range []error{tail.Err(), tail.Sync(), tail.Close(next), again} {
			if !errors.Is(got, err) {
				t.Errorf("%s: %v later, want %v", name, got, err)
			}
		}
		if next.syncs.Load() != 0 || !errors.Is(next.File.Close(), fs.ErrClosed) {
			t.Errorf("%s: the next file was synced, or left open", name)
		}
	}
}

// TestFailedClose: a system that loses what was written says so at the end, perhaps.
func TestFailedClose(t *testing.T) {
	var tail Tail
	if err := tail.Close(unclosable{}); err == nil || tail.Err() == nil {
		t.Errorf("Close: %v, later %v", err, tail.Err())
	}
}

type unclosable struct{}

func (unclosable) Sync() error  { return nil }
func (unclosable) Close() error { return syscall.EIO }

// TestCloseWaits: a file is not closed while it is synced, and what comes of that is
// told to who closes it.
func TestCloseWaits(t *testing.T) {
	for _, bad := range []error{nil, syscall.EIO} {
		var tail Tail
		f := slow(t)
		f.err = bad
		f.put(t, &tail, "line\n")
		var all sync.WaitGroup
		all.Go(func() {
			if err := tail.Sync(); (err != nil) != (bad != nil) {
				t.Errorf("Sync: %v", err)
			}
		})
		<-f.begun
		all.Go(func() {
			if err := tail.Close(f); (err != nil) != (bad != nil) {
				t.Errorf("%v: closed with %v", bad, err)
			}
		})
		close(f.goOn)
		all.Wait()
		if got := f.syncs.Load(); got != 1 {
			t.Errorf("synced %d times", got)
		}
	}
}

// TestWritesGoOn: while a file is synced others write, which the next Sync is for; and
// no Sync returns before one that began earlier.
func TestWritesGoOn(t *testing.T) {
	var tail Tail
	f := slow(t)
	f.put(t, &tail, "first\n")
	var all sync.WaitGroup
	all.Go(func() {
		if err := tail.Sync(); err != nil {
			t.Error(err)
		}
	})
	<-f.begun
	if err := tail.Err(); err != nil {
		t.Error(err)
	}
	var came sync.WaitGroup
	for range 8 {
		came.Add(1)
		all.Go(func() {
			came.Done()
			if err := tail.Sync(); err != nil || f.durable.Load() < 6 {
				t.Errorf("Sync with %d bytes on the disk: %v", f.durable.Load(), err)
			}
		})
	}
	came.Wait()
	close(f.goOn)
	all.Wait()
	f.put(t, &tail, "second\n")
	if err := tail.Sync(); err != nil || f.durable.Load() != 13 || f.syncs.Load() != 2 {
		t.Errorf("%d bytes, synced %d times: %v", f.durable.Load(), f.syncs.Load(), err)
	}
}

// TestConcurrent: many write to one file after another, and each finds its line on
// the disk when its Sync has returned.
func TestConcurrent(t *testing.T) {
	var tail Tail
	var files []*watched
	for i := range 20 {
		files = append(files, create(t, fmt.Sprint(i)))
	}
	var mu sync.Mutex // who appends does so one at a time
	lines, size := 0, int64(0)
	write := func(line string) (f *watched, end int64) {
		mu.Lock()
		defer mu.Unlock()
		f = files[lines/20]
		n, err := f.WriteString(line)
		tail.Wrote(f, size+int64(n))
		size, lines = size+int64(n), lines+1
		end = size
		if lines%20 == 0 { // it is full
			err = errors.Join(err, tail.Close(f))
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
				if err := tail.Sync(); err != nil || file.durable.Load() < end {
					t.Errorf("%d of %d bytes are on the disk: %v", file.durable.Load(), end, err)
				}
			}
		})
	}
	all.Wait()
}
