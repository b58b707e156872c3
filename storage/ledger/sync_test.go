package ledger

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
)

// Goroutines may sync while others end segments: no call fails.
func TestSyncWhileSegmentsEnd(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, Config{Dir: dir, MaxSegmentSize: 1 << 10, RunStart: testRun()})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				_, err := l.Append(&Record{Refusal: &Refusal{URL: "http://a.test/", Reason: "out of scope"}})
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
	if r, err := Verify(dir, VerifyOptions{}); err != nil || !r.OK() || !r.Closed ||
		r.Refusals != 80 || r.Segments < 10 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A segment is synced before its file is closed, so that a concurrent Sync does not fail.
func TestSegmentIsSyncedBeforeItEnds(t *testing.T) {
	l := openLedger(t, Config{Dir: t.TempDir(), MaxSegmentSize: 1, RunStart: testRun()})
	before := &syncRecorder{File: l.file}
	l.syncTracker.RecordWrite(before, 0)
	if _, err := l.Append(&Record{Refusal: &Refusal{URL: "http://a.test/", Reason: "out of scope"}}); err != nil {
		t.Fatal(err)
	}
	if l.segmentSerial != 2 || !before.synced {
		t.Errorf("segment %d has begun, and that before it was synced: %v", l.segmentSerial, before.synced)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A syncRecorder is a file that records whether it was synced.
type syncRecorder struct {
	*os.File
	synced bool
}

func (f *syncRecorder) Sync() error {
	f.synced = true
	return f.File.Sync()
}

// After a failed Sync the last records may be lost, so nothing is written any more, not even a RunEnd. The
// next Open finds what is left.
func TestNothingAfterAFailedSync(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, Config{Dir: dir, SigningKey: testKey, RunStart: testRun()})
	refusal := &Record{Refusal: &Refusal{URL: "http://a.test/", Reason: "out of scope"}}
	if _, err := l.Append(refusal); err != nil {
		t.Fatal(err)
	}
	lost := l.syncTracker.RecordFailure(errors.New("the disk is gone"))
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
	l = openLedger(t, Config{Dir: dir, SigningKey: testKey, RunStart: testRun(), OnRecovered: func(int64) {
		recovered = true
	}})
	if err := l.Close(); err != nil || !recovered {
		t.Errorf("opened again: recovered %v, %v", recovered, err)
	}
	if r := verifyWithoutFindings(t, dir); r.Refusals != 1 || r.Runs != 2 {
		t.Errorf("%+v", r)
	}
}
