package sinks

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// checkStaysFailed checks that a file accepts no more lines, now and later.
func checkStaysFailed(t *testing.T, f *jsonlFile) {
	t.Helper()
	if _, err := f.Write([]byte("x\n")); err == nil || disk.IsFull(err) ||
		!strings.Contains(err.Error(), "may not be on the disk") {
		t.Errorf("Write after a failure: %v, want an error for good", err)
	}
	if err := f.Sync(); err == nil {
		t.Error("Sync succeeds after a failure: the bytes that the system has dropped are not on the disk")
	}
}

// A pipe cannot be synced. Treated as a regular file it behaves like a broken disk; treated as a pipe it is
// never synced.
func TestSync(t *testing.T) {
	for _, regular := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		f := newJSONLFile("", 0, regular, w)
		if err := f.Sync(); err != nil {
			t.Errorf("with nothing written: %v", err)
		}
		if _, err := io.WriteString(f, "a line\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); (err != nil) != regular {
			t.Errorf("regular: %v, Sync: %v", regular, err)
		}
		if regular {
			checkStaysFailed(t, f)
		}
		if err := f.Close(); (err != nil) != regular {
			t.Errorf("regular: %v, Close: %v", regular, err)
		}
	}
}

// A store that calls Sync before it writes becomes durable only after the lines of output are on the disk,
// and fails if they may be lost.
func TestStoreWaitsForLines(t *testing.T) {
	out, err := OpenJSONLRecorder(Config{JSONLPath: filepath.Join(t.TempDir(), datadir.OutputFile),
		FileMode: datadir.PrivateFileMode})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	store, err := bolt.Open(filepath.Join(t.TempDir(), datadir.StoreFile),
		bolt.Options{BeforeWrite: Outputs{JSONL: out}.Sync})
	if err != nil {
		t.Fatal(err)
	}
	flush := func(path string) error {
		u, err := decorum.ParseURL("http://a.example" + path)
		if err == nil {
			_, err = store.Add(t.Context(), []storage.Entry{{URL: u}}, 0)
		}
		return errors.Join(err, store.Flush(t.Context()))
	}
	if err := flush("/1"); err != nil {
		t.Errorf("with a working disk: %v", err)
	}
	out.file.syncTracker.RecordFailure(errors.New("the disk is gone"))
	if err := flush("/2"); !errors.Is(err, storage.ErrFailed) {
		t.Errorf("with lines that may be lost: %v, want ErrFailed", err)
	}
	if err := store.Close(); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("closed with %v, want the reason", err)
	}
}
