package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Response is written with the record after it, or by Sync; a Request is written at once.
func TestResponsesAreBuffered(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, Config{Dir: dir, RunStart: testRun()})
	lines := func() int {
		text, err := os.ReadFile(filepath.Join(dir, plainSegmentName(1)))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte("\n"))
	}
	add := func(r Record, want int) int64 {
		n, err := l.Append(&r)
		if got := lines(); err != nil || got != want {
			t.Errorf("%d records in the file (%v), want %d", got, err, want)
		}
		return n
	}
	first := add(Record{Request: newRobotsRequest("a.test")}, 2)
	add(Record{Response: &Response{RequestNumber: first, Status: 200}}, 2)
	second := add(Record{Request: newRobotsRequest("b.test")}, 4)
	add(Record{Response: &Response{RequestNumber: second, Status: 200}}, 4)
	if err := l.Sync(); err != nil || lines() != 5 {
		t.Errorf("after Sync (%v) there are %d records, want 5", err, lines())
	}
	for range 2 * maxBufferedBytes / maxLinePrefixSize {
		if _, err := l.Append(&Record{Response: &Response{Status: 200}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.buffered) > maxBufferedBytes+maxLinePrefixSize+1<<10 {
		t.Errorf("%d bytes are buffered, want at most about %d", len(l.buffered), maxBufferedBytes)
	}
}

// newRobotsRequest returns a request for the robots.txt of a host.
func newRobotsRequest(host string) *Request {
	return &Request{URL: "http://" + host + "/robots.txt", Kind: KindRobotsTXT, Origin: "http://" + host,
		URLSource: "robots", Slots: 1}
}

// While writes fail, a buffered Response keeps its place in the chain, and a record that failed leaves no
// gap.
func TestResponseAfterFailedWrite(t *testing.T) {
	dir := t.TempDir()
	l := openLedger(t, Config{Dir: dir, RunStart: testRun()})
	for _, host := range []string{"a.test", "b.test"} {
		n, err := l.Append(&Record{Request: newRobotsRequest(host)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(&Record{Response: &Response{RequestNumber: n, EndedAt: truncateTime(time.Now()),
			Status: 200}}); err != nil {
			t.Fatal(err)
		}
		file := l.file
		if l.file, err = os.Open(file.Name()); err != nil { // read-only, so that writes fail
			t.Fatal(err)
		}
		if _, err := l.Append(&Record{Request: newRobotsRequest("c.test")}); err == nil {
			t.Error("Append of a request succeeds with a read-only file")
		}
		if err := l.Sync(); err == nil {
			t.Error("Sync of a response succeeds with a read-only file")
		}
		if err := l.file.Close(); err != nil {
			t.Error(err)
		}
		l.file = file
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(dir, VerifyOptions{}); err != nil || !got.OK() || !got.Closed ||
		got.Requests != 2 || got.Responses != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}
