package ledger

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// goOn opens a ledger again, makes a visit and closes it. It returns what was said
// of a recovery: -1 if nothing was.
func goOn(t *testing.T, dir string) (cut int64) {
	t.Helper()
	cut = -1
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour) // after what the samples were written in
		w := &writer{t: t, l: open(t, Config{Dir: dir, MaxSize: 8 << 10, Key: testKey, Run: testRun(), Recovered: func(n int64) { cut = n }})}
		w.visit(0, "/after")
		if err := w.l.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return cut
}

// right checks a ledger in which nothing may be wrong.
func right(t *testing.T, dir string) *Report {
	t.Helper()
	r := verify(t, dir)
	for _, f := range r.Findings {
		t.Error(f)
	}
	return r
}

// TestTornEnd: whatever part of the last records is left, the ledger can be gone on
// with, and says what was cut off.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir, 2)
	good := readAll(t, dir)
	all, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1].name
	text := good[last]
	ends := len(text) - 1 - strings.LastIndex(string(text[:len(text)-1]), "\n") // of the last record
	for _, left := range []int{1, 10, headSize, ends / 2, ends - 1} {
		now := maps.Clone(good)
		now[last] = text[:len(text)-ends+left]
		become(t, dir, good, now)
		if r, err := Verify(dir, VerifyOptions{}); err != nil || r.OK() || !strings.Contains(r.Findings[0].What, "is torn") {
			t.Errorf("%d bytes of the last record: %+v, %v, want that it is torn", left, r.Findings, err)
		}
		if cut := goOn(t, dir); cut != int64(left) {
			t.Errorf("%d bytes of the last record: %d bytes cut", left, cut)
		}
		if r := right(t, dir); r.Runs != 4 || !r.Closed {
			t.Errorf("%d bytes of the last record: %+v", left, *r)
		}
		become(t, dir, readAll(t, dir), good)
	}
}

// Zeros at the end, which a file system leaves after a loss of power, are a torn record.
func TestZerosAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir, 2)
	all, _ := segments(dir)
	f, err := os.OpenFile(filepath.Join(dir, all[len(all)-1].name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(make([]byte, 4096))
	f.Close()
	if cut := goOn(t, dir); cut != 4096 {
		t.Errorf("%d bytes cut, want the zeros", cut)
	}
	right(t, dir)
}

// TestDamagedEnd: a ledger that is damaged otherwise is not gone on with, and stays
// as it is.
func TestDamagedEnd(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir, 2)
	good := readAll(t, dir)
	all, _ := segments(dir)
	last := all[len(all)-1].name
	bad := maps.Clone(good)
	bad[last] = []byte(strings.Replace(string(good[last]), `"status":200`, `"status":404`, 1))
	become(t, dir, good, bad)
	_, err := Open(Config{Dir: dir, Run: testRun()})
	if err == nil || !strings.Contains(err.Error(), "does not have the hash that it states") || !strings.Contains(err.Error(), last+", line ") {
		t.Errorf("error %v, want one that names the record", err)
	}
	if !same(bad, readAll(t, dir)) {
		t.Error("the ledger was changed")
	}
}

// TestRotationCutShort: wherever a crash comes while a segment is compressed and the
// next begun, nothing is lost.
func TestRotationCutShort(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir, 2)
	good := readAll(t, dir)
	all, _ := segments(dir)
	before, last := all[len(all)-2], all[len(all)-1]
	plain := unpack(t, before.name, good[before.name])
	for name, state := range map[string]func(copybook){
		"half compressed": func(c copybook) {
			delete(c, before.name)
			delete(c, last.name)
			c[before.name+".new"], c[plainName(before.serial)] = good[before.name][:100], plain
		},
		"compressed": func(c copybook) {
			delete(c, last.name)
			c[plainName(before.serial)] = plain
		},
		"without the next":     func(c copybook) { delete(c, last.name) },
		"the next is empty":    func(c copybook) { c[last.name], c[plainName(before.serial)] = []byte{}, plain },
		"the plain file stays": func(c copybook) { c[plainName(before.serial)] = plain },
	} {
		now := maps.Clone(good)
		state(now)
		become(t, dir, good, now)
		goOn(t, dir)
		if r := right(t, dir); !r.Closed {
			t.Errorf("%s: not closed", name)
		}
		if t.Failed() {
			t.Fatal(name)
		}
		become(t, dir, readAll(t, dir), good)
	}
}

// What stands behind the last record since a write failed there is written over.
func TestWriteIsRepeated(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, Key: testKey, Run: testRun()})
	if _, err := l.file.WriteAt([]byte(`{"hash":"half of a longer record that found no room`), l.size); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	right(t, dir)
}

// A clock that is set back puts off no checkpoint: the last one is known by the
// monotonic clock.
func TestCheckpointsByMonotonicClock(t *testing.T) {
	l := open(t, Config{Dir: t.TempDir(), Key: testKey, Checkpoint: time.Nanosecond, Run: testRun()})
	if _, err := l.Append(&Record{Refusal: &Refusal{URL: "http://a.test/"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(l.signed.String(), " m=") {
		t.Errorf("the last checkpoint was at %v, without a monotonic clock", l.signed)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run of many overrides, each with its reason, fits in a record.
func TestManyOverrides(t *testing.T) {
	dir, run := t.TempDir(), testRun()
	for i := range 20_000 {
		run.Hosts[fmt.Sprintf("host-%d.test", i)] = Override{DelayMS: new(int64(100)), Reason: strings.Repeat("agreed ", 20)}
	}
	if err := open(t, Config{Dir: dir, Run: run}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, Config{Dir: dir, Run: run}).Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Verify(dir, VerifyOptions{})
	if err != nil || !report.OK() || report.Runs != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// Megabytes of zeros are a torn record, too.
func TestManyZerosAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, Config{Dir: dir, Run: testRun()}).Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, plainName(1))
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, info.Size()+5<<20); err != nil {
		t.Fatal(err)
	}
	if err := open(t, Config{Dir: dir, Run: testRun()}).Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(dir, VerifyOptions{}); err != nil || !r.OK() || r.Runs != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A segment that cannot be compressed, since the disk is full, does not grow by a
// checkpoint each time that is tried.
func TestRotationIsRepeated(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, MaxSize: 1, Key: testKey, Run: testRun()})
	inTheWay := filepath.Join(dir, plainName(1)+packedEnding+".new")
	if err := os.Mkdir(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	refusal := &Record{Refusal: &Refusal{URL: "http://a.test/", Why: "out of scope"}}
	var sizes []int64
	for range 3 {
		if _, err := l.Append(refusal); err == nil {
			t.Fatal("a segment was compressed into a directory")
		}
		sizes = append(sizes, l.size)
	}
	if sizes[2] != sizes[0] {
		t.Errorf("the segment grows: %v", sizes)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(refusal); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	right(t, dir)
}
