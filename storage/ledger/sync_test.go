package ledger

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
)

// TestSyncWhileSegmentsEnd: segments are ended while others are synced, and nobody
// takes that for a failure.
func TestSyncWhileSegmentsEnd(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, MaxSize: 1 << 10, Run: testRun()})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				_, err := l.Append(&Record{Refusal: &Refusal{URL: "http://a.test/", Why: "out of scope"}})
				if err = errors.Join(err, l.Sync()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(dir, VerifyOptions{}); err != nil || !r.OK() || !r.Closed || r.Refusals != 80 || r.Segments < 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSegmentIsSyncedBeforeItEnds: a Sync that goes on must not find its file closed.
func TestSegmentIsSyncedBeforeItEnds(t *testing.T) {
	l := open(t, Config{Dir: t.TempDir(), MaxSize: 1, Run: testRun()})
	before := &seen{File: l.file}
	l.tail.RecordWrite(before, 0)
	if _, err := l.Append(&Record{Refusal: &Refusal{URL: "http://a.test/", Why: "out of scope"}}); err != nil {
		t.Fatal(err)
	}
	if l.serial != 2 || !before.synced {
		t.Errorf("segment %d has begun, and that before it was synced: %v", l.serial, before.synced)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A seen file tells whether it was synced.
type seen struct {
	*os.File
	synced bool
}

func (f *seen) Sync() error {
	f.synced = true
	return f.File.Sync()
}

// TestNothingAfterAFailedSync: what was written may be lost, and so nothing is
// written after it, no End either. Whoever opens the ledger again sees what is left.
func TestNothingAfterAFailedSync(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, Key: testKey, Run: testRun()})
	refusal := &Record{Refusal: &Refusal{URL: "http://a.test/", Why: "out of scope"}}
	if _, err := l.Append(refusal); err != nil {
		t.Fatal(err)
	}
	lost := l.tail.RecordFailure(errors.New("the disk is gone"))
	if _, err := l.Append(refusal); !errors.Is(err, lost) || !strings.Contains(err.Error(), "ledger") {
		t.Errorf("Append: %v", err)
	}
	if err := l.Close(); !errors.Is(err, lost) {
		t.Errorf("Close: %v", err)
	}
	if err := l.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := l.Append(refusal); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	recovered := false
	l = open(t, Config{Dir: dir, Key: testKey, Run: testRun(), Recovered: func(int64) { recovered = true }})
	if err := l.Close(); err != nil || !recovered {
		t.Errorf("opened again: recovered %v, %v", recovered, err)
	}
	if r := right(t, dir); r.Refusals != 1 || r.Runs != 2 {
		t.Errorf("%+v", r)
	}
}
