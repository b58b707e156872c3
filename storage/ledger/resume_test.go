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

// reopenAndVisit opens a ledger again, makes a visit and closes it. It returns the argument of OnRecovered, or
// -1 if that was not called.
func reopenAndVisit(t *testing.T, dir string) (cut int64) {
	t.Helper()
	cut = -1
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour) // past the times of the samples
		w := &sampleWriter{t: t, ledger: openLedger(t, Config{Dir: dir, MaxSegmentSize: 8 << 10, SigningKey: testKey,
			RunStart: testRun(), OnRecovered: func(n int64) { cut = n }})}
		w.writeVisit(0, "/after")
		if err := w.ledger.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return cut
}

// verifyWithoutFindings verifies a ledger, and fails the test for each finding.
func verifyWithoutFindings(t *testing.T, dir string) *VerifyReport {
	t.Helper()
	r := verifySigned(t, dir)
	for _, f := range r.Findings {
		t.Error(f)
	}
	return r
}

// Whatever part of the last record is left, the ledger can be continued, and OnRecovered gets the number of
// bytes that were cut.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir, 2)
	original := readFiles(t, dir)
	all, err := listSegments(dir)
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1].name
	text := original[last]
	// Bytes of the last record.
	lastSize := len(text) - 1 - strings.LastIndex(string(text[:len(text)-1]), "\n")
	for _, partBytes := range []int{1, 10, linePrefixSize, lastSize / 2, lastSize - 1} {
		now := maps.Clone(original)
		now[last] = text[:len(text)-lastSize+partBytes]
		replaceFiles(t, dir, original, now)
		if r, err := Verify(dir, VerifyOptions{}); err != nil || r.OK() ||
			!strings.Contains(r.Findings[0].Message, "is torn") {
			t.Errorf("%d bytes of the last record: %+v, %v, want a finding that it is torn", partBytes, r.Findings, err)
		}
		if cut := reopenAndVisit(t, dir); cut != int64(partBytes) {
			t.Errorf("%d bytes of the last record: %d bytes cut", partBytes, cut)
		}
		if r := verifyWithoutFindings(t, dir); r.Runs != 4 || !r.Closed {
			t.Errorf("%d bytes of the last record: %+v", partBytes, *r)
		}
		replaceFiles(t, dir, readFiles(t, dir), original)
	}
}

// Zeros at the end, which a file system may leave after a loss of power, are cut as a torn record.
func TestZerosAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir, 2)
	all, _ := listSegments(dir)
	f, err := os.OpenFile(filepath.Join(dir, all[len(all)-1].name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(make([]byte, 4096))
	f.Close()
	if cut := reopenAndVisit(t, dir); cut != 4096 {
		t.Errorf("%d bytes cut, want the zeros", cut)
	}
	verifyWithoutFindings(t, dir)
}

// Open refuses a ledger with a changed record, and does not change its files.
func TestDamagedEnd(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir, 2)
	original := readFiles(t, dir)
	all, _ := listSegments(dir)
	last := all[len(all)-1].name
	damaged := maps.Clone(original)
	damaged[last] = []byte(strings.Replace(string(original[last]), `"status":200`, `"status":404`, 1))
	replaceFiles(t, dir, original, damaged)
	_, err := Open(Config{Dir: dir, RunStart: testRun()})
	if err == nil || !strings.Contains(err.Error(), "does not have the hash that it states") ||
		!strings.Contains(err.Error(), last+", line ") {
		t.Errorf("error %v, want one that names the record", err)
	}
	if !sameFiles(damaged, readFiles(t, dir)) {
		t.Error("the ledger was changed")
	}
}

// Wherever a crash comes while a segment is compressed and the next one begun, nothing is lost.
func TestRotationCutShort(t *testing.T) {
	dir := t.TempDir()
	writeSample(t, dir, 2)
	original := readFiles(t, dir)
	all, _ := listSegments(dir)
	before, last := all[len(all)-2], all[len(all)-1]
	plain := decompressSegment(t, before.name, original[before.name])
	for name, state := range map[string]func(ledgerFiles){
		"half compressed": func(c ledgerFiles) {
			delete(c, before.name)
			delete(c, last.name)
			c[before.name+".new"], c[plainSegmentName(before.serial)] = original[before.name][:100], plain
		},
		"compressed": func(c ledgerFiles) {
			delete(c, last.name)
			c[plainSegmentName(before.serial)] = plain
		},
		"without the next": func(c ledgerFiles) { delete(c, last.name) },
		"the next is empty": func(c ledgerFiles) {
			c[last.name], c[plainSegmentName(before.serial)] = []byte{}, plain
		},
		"the plain file stays": func(c ledgerFiles) { c[plainSegmentName(before.serial)] = plain },
	} {
		now := maps.Clone(original)
		state(now)
		replaceFiles(t, dir, original, now)
		reopenAndVisit(t, dir)
		if r := verifyWithoutFindings(t, dir); !r.Closed {
			t.Errorf("%s: not closed", name)
		}
		if t.Failed() {
			t.Fatal(name)
		}
		replaceFiles(t, dir, readFiles(t, dir), original)
	}
}

// Bytes that a failed write has left after the last record are overwritten or cut.
func TestWriteIsRepeated(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, Config{Dir: dir, SigningKey: testKey, RunStart: testRun()})
	if _, err := l.file.WriteAt([]byte(`{"hash":"half of a longer record that found no room`),
		l.segmentSize); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	verifyWithoutFindings(t, dir)
}

// A clock that is set back does not delay the next checkpoint, because the time of the last one has a
// monotonic reading.
func TestCheckpointsByMonotonicClock(t *testing.T) {
	l := openLedger(t, Config{Dir: t.TempDir(), SigningKey: testKey,
		CheckpointInterval: time.Nanosecond, RunStart: testRun()})
	if _, err := l.Append(&Record{Refusal: &Refusal{URL: "http://a.test/"}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(l.checkpointedAt.String(), " m=") {
		t.Errorf("the last checkpoint was at %v, without a monotonic clock", l.checkpointedAt)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// The RunStart of a run with 20,000 overrides, each with a reason, fits in a record.
func TestManyOverrides(t *testing.T) {
	dir, run := t.TempDir(), testRun()
	for i := range 20_000 {
		run.HostOverrides[fmt.Sprintf("host-%d.test", i)] = HostOverride{DelayMS: new(int64(100)),
			Reason: strings.Repeat("agreed ", 20)}
	}
	if err := openLedger(t, Config{Dir: dir, RunStart: run}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := openLedger(t, Config{Dir: dir, RunStart: run}).Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Verify(dir, VerifyOptions{})
	if err != nil || !report.OK() || report.Runs != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// Five MiB of zeros at the end are cut as well.
func TestManyZerosAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	if err := openLedger(t, Config{Dir: dir, RunStart: testRun()}).Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, plainSegmentName(1))
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, info.Size()+5<<20); err != nil {
		t.Fatal(err)
	}
	if err := openLedger(t, Config{Dir: dir, RunStart: testRun()}).Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(dir, VerifyOptions{}); err != nil || !r.OK() || r.Runs != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

// If a segment cannot be compressed, because the disk is full, repeated attempts do not each add a checkpoint.
func TestRotationIsRepeated(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, Config{Dir: dir, MaxSegmentSize: 1, SigningKey: testKey, RunStart: testRun()})
	inTheWay := filepath.Join(dir, plainSegmentName(1)+compressedSuffix+".new")
	if err := os.Mkdir(inTheWay, 0o755); err != nil {
		t.Fatal(err)
	}
	refusal := &Record{Refusal: &Refusal{URL: "http://a.test/", Reason: "out of scope"}}
	var sizes []int64
	for range 3 {
		if _, err := l.Append(refusal); err == nil {
			t.Fatal("a segment was compressed into a directory")
		}
		sizes = append(sizes, l.segmentSize)
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
	verifyWithoutFindings(t, dir)
}
