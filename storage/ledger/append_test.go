package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAnswersGoWithTheNext: an Answer is in the file with the record after it, or
// after Sync; a Request at once.
func TestAnswersGoWithTheNext(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, Run: testRun()})
	lines := func() int {
		text, err := os.ReadFile(filepath.Join(dir, plainName(1)))
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
	first := add(Record{Request: asking("a.test")}, 2)
	add(Record{Answer: &Answer{Request: first, Status: 200}}, 2)
	second := add(Record{Request: asking("b.test")}, 4)
	add(Record{Answer: &Answer{Request: second, Status: 200}}, 4)
	if err := l.Sync(); err != nil || lines() != 5 {
		t.Errorf("after Sync (%v) there are %d records, want 5", err, lines())
	}
	for range 2 * maxBufferedBytes / placeSize {
		if _, err := l.Append(&Record{Answer: &Answer{Status: 200}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.held) > maxBufferedBytes+placeSize+1<<10 {
		t.Errorf("%d bytes wait", len(l.held))
	}
}

// asking returns the request for a host's robots.txt.
func asking(host string) *Request {
	return &Request{URL: "http://" + host + "/robots.txt", Kind: RobotsTXT, Origin: "http://" + host, Source: "robots", Slots: 1}
}

// TestAnswerOutlivesFailure: while nothing can be written, what waits stays in its
// place in the chain, and what failed leaves none.
func TestAnswerOutlivesFailure(t *testing.T) {
	dir := t.TempDir()
	l := open(t, Config{Dir: dir, Run: testRun()})
	for _, host := range []string{"a.test", "b.test"} {
		n, err := l.Append(&Record{Request: asking(host)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(&Record{Answer: &Answer{Request: n, End: stamp(time.Now()), Status: 200}}); err != nil {
			t.Fatal(err)
		}
		file := l.file
		if l.file, err = os.Open(file.Name()); err != nil { // to be read only
			t.Fatal(err)
		}
		if _, err := l.Append(&Record{Request: asking("c.test")}); err == nil {
			t.Error("a request was written that cannot be")
		}
		if err := l.Sync(); err == nil {
			t.Error("an answer was written that cannot be")
		}
		if err := l.file.Close(); err != nil {
			t.Error(err)
		}
		l.file = file
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Verify(dir, VerifyOptions{}); err != nil || !got.OK() || !got.Closed || got.Requests != 2 || got.Answers != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}
