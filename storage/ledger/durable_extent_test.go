package ledger

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writeKilledLedger writes a ledger and ends as a killed process does. It returns the last segment, and
// how much of it was on the disk. size is Config.MaxSegmentSize.
func writeKilledLedger(t *testing.T, dir string, size int64, pages int) (file string, extent DurableExtent) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := openLedger(t, Config{Dir: dir, MaxSegmentSize: size, SigningKey: testKey, RunStart: testRun()})
		w := &sampleWriter{t: t, ledger: l}
		w.writeVisits(pages)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		extent = l.DurableExtent()
		w.writeVisits(pages)
		file = l.file.Name()
		if now := l.DurableExtent(); now.SegmentSerial != extent.SegmentSerial { // another segment has begun
			extent = now
		}
		closeAsKilled(t, l)
	})
	return file, extent
}

// tearPages returns a file as a loss of power may leave it: after offset from, each page is intact, or zeros,
// or garbled, or missing with all pages after it.
func tearPages(r *rand.Rand, text []byte, from int64) []byte {
	text = bytes.Clone(text)
	for at := from; at < int64(len(text)); {
		end := min(int64(len(text)), (at/512+1)*512)
		switch r.IntN(4) {
		case 0:
			clear(text[at:end])
		case 1:
			for i := at; i < end; i++ {
				text[i] = byte(r.Uint32())
			}
		}
		at = end
	}
	if r.IntN(3) == 0 {
		text = text[:from+r.Int64N(int64(len(text))-from+1)]
	}
	return append(text, make([]byte, r.IntN(3)*4096)...)
}

// reopenWithExtent opens a ledger with a known durable length, makes a visit, and closes the ledger.
func reopenWithExtent(t *testing.T, dir string, extent DurableExtent) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		var l *Ledger
		if l, err = Open(Config{Dir: dir, MaxSegmentSize: 8 << 10, SigningKey: testKey, RunStart: testRun(),
			LastDurableExtent: extent}); err != nil {
			return
		}
		w := &sampleWriter{t: t, ledger: l}
		w.writeVisit(0, "/after")
		err = l.Close()
	})
	return err
}

// A ledger continues after a loss of power that has damaged pages behind the durable length in any order. The
// records there are cut from the first damaged one on, and the other records are intact.
func TestLossOfPower(t *testing.T) {
	for name, size := range map[string]int64{"one segment": 0, "several": 8 << 10} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, extent := writeKilledLedger(t, dir, size, 4)
			text, err := os.ReadFile(file)
			if err != nil || extent.Size >= int64(len(text)) {
				t.Fatalf("%+v of %d bytes (%v): want bytes behind the durable length", extent, len(text), err)
			}
			original := readFiles(t, dir)
			for seed := range uint64(60) {
				remains := tearPages(rand.New(rand.NewPCG(seed, 1)), text, extent.Size)
				if err := os.WriteFile(file, remains, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := reopenWithExtent(t, dir, extent); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				verifyWithoutFindings(t, dir)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
				replaceFiles(t, dir, readFiles(t, dir), original)
			}
		})
	}
}

// If records that were on the disk are damaged or missing, Open returns an error that says what to do, and
// cuts nothing.
func TestLossBeforeDurableExtent(t *testing.T) {
	dir := t.TempDir()
	file, extent := writeKilledLedger(t, dir, 0, 4)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	garbled := bytes.Clone(text)
	clear(garbled[extent.Size-200 : extent.Size-100])
	for name, remains := range map[string][]byte{"garbled": garbled, "short": text[:extent.Size-1], "empty": {}} {
		if err := os.WriteFile(file, remains, 0o644); err != nil {
			t.Fatal(err)
		}
		err := reopenWithExtent(t, dir, extent)
		if err == nil || !strings.Contains(err.Error(), "is damaged") ||
			!strings.Contains(err.Error(), "move the directory") {
			t.Errorf("%s: %v, want that it is damaged", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, remains) {
			t.Errorf("%s: the file was changed (%v)", name, err)
		}
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	missing := DurableExtent{SegmentSerial: 2, Size: 10}
	if err := reopenWithExtent(t, dir, missing); err == nil ||
		!strings.Contains(err.Error(), "ledger-000002.jsonl is missing") {
		t.Errorf("a missing segment: %v", err)
	}
	elsewhere := t.TempDir() // as if the directory was moved away
	if err := reopenWithExtent(t, elsewhere, extent); err != nil {
		t.Errorf("another ledger cannot be begun: %v", err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, filepath.Base(file))); err != nil {
		t.Error(err)
	}
}
