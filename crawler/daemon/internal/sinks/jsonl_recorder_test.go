package sinks

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

func TestTornLineIsCut(t *testing.T) {
	long := recordPrefix + strings.Repeat("x", 200<<10) // longer than the blocks that cutOrEndTornLine reads
	for _, tt := range []struct{ name, was, want string }{
		{"nothing", "", ""},
		{"whole lines", "a\nb\n", "a\nb\n"},
		{"a torn line", "a\n" + recordPrefix + "b", "a\n"},
		{"a torn line alone", recordPrefix + "b", ""},
		{"hardly begun", "a\n{", "a\n"},
		{"a torn line of another program", "notes without an end", "notes without an end\n"},
		{"whole lines, and a torn one of another program", "a\nnotes", "a\nnotes\n"},
		{"a long torn line", "a\n" + long, "a\n"},
		{"a long torn line alone", long, ""},
		{"zeros of a disk that lost power", "a\n\x00\x00\x00", "a\n"},
		{"zeros after a torn line", "a\n" + recordPrefix + "b\x00\x00", "a\n"},
		{"after a long line", long + "\n{", long + "\n"},
		{"an end of line at a block's edge", "a\n" + long[:64<<10], "a\n"},
		{"an end of line inside a block's edge", "a\n" + long[:64<<10-1], "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := testfile.Write(t, "out.jsonl", tt.was)
			o, err := OpenJSONLRecorder(Config{JSONLPath: name, FileMode: datadir.PrivateFileMode, Resume: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(o.writeLine(t.Context(), []byte("new\n")), o.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			if err != nil || string(got) != tt.want+"new\n" {
				t.Errorf("%d bytes, %v; want the whole lines and the new one", len(got), err)
			}
		})
	}
}

// When a write returns, its line is in the file, and concurrent lines are not mixed.
func TestOutputWritesWholeLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	o, err := OpenJSONLRecorder(Config{JSONLPath: name, FileMode: datadir.PrivateFileMode})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	line := strings.Repeat("x", 5000) + "\n"
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := o.writeLine(t.Context(), []byte(line)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := os.ReadFile(name); err != nil || string(got) != strings.Repeat(line, 400) {
		t.Errorf("%d bytes, %v; want 400 whole lines", len(got), err)
	}
}

// A tornWriter accepts half of the first write, and then fails with err.
type tornWriter struct {
	bytes.Buffer
	err error
}

func (b *tornWriter) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:len(p)/2])
	return len(p) / 2, b.err
}

// After a failed write, nothing is written after the torn line.
func TestOutputStopsAfterAnError(t *testing.T) {
	b := tornWriter{err: io.ErrShortWrite}
	o := &JSONLRecorder{w: &b}
	for range 2 {
		if err := o.writeLine(t.Context(), []byte("abcd")); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("error %v, want that of the first write", err)
		}
	}
	if b.String() != "ab" {
		t.Errorf("%q was written, want the first half line alone", b.String())
	}
}

// If the reader leaves in the middle of a line, every worker learns it, not only the one that wrote the
// line.
func TestReaderLeavesInTheMiddleOfALine(t *testing.T) {
	o := NewJSONLRecorder(&tornWriter{err: syscall.EPIPE})
	for range 2 {
		if err := o.writeLine(t.Context(), []byte("abcd")); !errors.Is(err, ErrReaderLeft) {
			t.Errorf("error %v, want %v", err, ErrReaderLeft)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	o, err := OpenJSONLRecorder(Config{JSONLPath: filepath.Join(b.TempDir(), "out.jsonl"),
		FileMode: datadir.PrivateFileMode})
	if err != nil {
		b.Fatal(err)
	}
	defer o.Close()
	r := OutputRecord{URL: "https://example.com/a/page?x=1", Status: 200, ContentType: "text/html", Title: "A page",
		Referrer: "https://example.com/", SHA256: strings.Repeat("0", 64), URLSource: "link"}
	for b.Loop() {
		line, err := r.encodeLine(nil)
		if err == nil {
			err = o.writeLine(b.Context(), line)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
