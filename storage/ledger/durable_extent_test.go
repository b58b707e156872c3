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

// killed writes a ledger in one segment or several, and returns its last segment as a kill leaves
// it, what of it was on the disk, and how much of it is records.
func killed(t *testing.T, dir string, size int64, pages int) (file string, onDisk Extent) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Config{Dir: dir, MaxSize: size, Key: testKey, Run: testRun()})
		w := &writer{t: t, l: l}
		w.crawl(pages)
		if err := l.Sync(); err != nil {
			t.Fatal(err)
		}
		onDisk = l.OnDisk()
		w.crawl(pages)
		file = l.file.Name()
		if now := l.OnDisk(); now.Serial != onDisk.Serial { // begun since
			onDisk = now
		}
		kill(t, l)
	})
	return file, onDisk
}

// torn returns a file after a loss of power: of the bytes behind from, every page is as it
// was written, or zeros, or garbled, or missing with all that follow it.
func torn(r *rand.Rand, text []byte, from int64) []byte {
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

// goOnFrom opens a ledger with a known durable length, makes a visit, and closes the
// ledger.
func goOnFrom(t *testing.T, dir string, onDisk Extent) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		var l *Ledger
		if l, err = Open(Config{Dir: dir, MaxSize: 8 << 10, Key: testKey, Run: testRun(), OnDisk: onDisk}); err != nil {
			return
		}
		w := &writer{t: t, l: l}
		w.visit(0, "/after")
		err = l.Close()
	})
	return err
}

// TestLossOfPower: a ledger continues after its pages behind the durable length were
// written in any order. These records are cut from the first that is not whole, and the
// rest is intact.
func TestLossOfPower(t *testing.T) {
	for name, size := range map[string]int64{"one segment": 0, "several": 8 << 10} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, onDisk := killed(t, dir, size, 4)
			text, err := os.ReadFile(file)
			if err != nil || onDisk.Size >= int64(len(text)) {
				t.Fatalf("%+v of %d bytes (%v): there is nothing to lose", onDisk, len(text), err)
			}
			good := readAll(t, dir)
			for seed := range uint64(60) {
				left := torn(rand.New(rand.NewPCG(seed, 1)), text, onDisk.Size)
				if err := os.WriteFile(file, left, 0o644); err != nil {
					t.Fatal(err)
				}
				if err := goOnFrom(t, dir, onDisk); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				right(t, dir)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
				become(t, dir, readAll(t, dir), good)
			}
		})
	}
}

// TestLossBeforeTheLengthOnTheDisk: records that were on the disk and are not whole, or
// missing, are an error that says what to do, and nothing is cut.
func TestLossBeforeTheLengthOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	file, onDisk := killed(t, dir, 0, 4)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	garbled := bytes.Clone(text)
	clear(garbled[onDisk.Size-200 : onDisk.Size-100])
	for name, left := range map[string][]byte{"garbled": garbled, "short": text[:onDisk.Size-1], "empty": {}} {
		if err := os.WriteFile(file, left, 0o644); err != nil {
			t.Fatal(err)
		}
		err := goOnFrom(t, dir, onDisk)
		if err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "move the directory") {
			t.Errorf("%s: %v, want that it is damaged", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, left) {
			t.Errorf("%s: the file was changed (%v)", name, err)
		}
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	missing := Extent{Serial: 2, Size: 10}
	if err := goOnFrom(t, dir, missing); err == nil || !strings.Contains(err.Error(), "ledger-000002.jsonl is missing") {
		t.Errorf("a segment that is missing: %v", err)
	}
	elsewhere := t.TempDir() // the directory was moved away
	if err := goOnFrom(t, elsewhere, onDisk); err != nil {
		t.Errorf("another ledger cannot be begun: %v", err)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, filepath.Base(file))); err != nil {
		t.Error(err)
	}
}
