package bolt

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// openNotes opens a NoteStore, and closes it at the end of the test.
func openNotes(t *testing.T, path string) *NoteStore {
	t.Helper()
	n, err := OpenNotes(path, Options{OnDamaged: func(err error) { t.Error(err) }})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// listNotes returns all notes, by origin and key, and checks that ReadNote agrees.
func listNotes(t *testing.T, n *NoteStore) map[string]string {
	t.Helper()
	notes := make(map[string]string)
	origins := []decorum.Origin{{}}
	must(t, n.OriginNames(t.Context(), func(o decorum.Origin) bool {
		origins = append(origins, o)
		return true
	}))
	for _, o := range origins {
		must(t, n.OriginNotes(t.Context(), o, func(key string, value []byte) bool {
			notes[o.String()+" "+key] = string(value)
			if one, err := n.ReadNote(t.Context(), o, key); err != nil || string(one) != string(value) {
				t.Errorf("note %q of %v: %q (%v), listed as %q", key, o, one, err, value)
			}
			return true
		}))
	}
	return notes
}

// TestNotes: a note is readable at once, after Flush, and after Close and Compact. A nil value deletes
// it.
func TestNotes(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "robots.db"), t.Context()
	n := openNotes(t, path)
	a, b := newEntry(t, "https://a.example/").URL.Origin(), newEntry(t, "http://b.example/").URL.Origin()
	want := map[string]string{a.String() + " rest": "1", b.String() + " robots": "",
		decorum.Origin{}.String() + " own": "2"}
	must(t, n.SetNote(ctx, a, "rest", []byte("1")))
	must(t, n.SetNote(ctx, a, "deleted", []byte("1")))
	must(t, n.SetNote(ctx, b, "robots", []byte{}))
	must(t, n.SetNote(ctx, decorum.Origin{}, "own", []byte("2")))
	must(t, n.Flush(ctx))
	must(t, n.SetNote(ctx, a, "deleted", nil))
	if got := listNotes(t, n); !maps.Equal(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if v, err := n.ReadNote(ctx, newEntry(t, "https://c.example/").URL.Origin(), "rest"); v != nil || err != nil {
		t.Errorf("note of an origin without notes: %q (%v), want none", v, err)
	}
	if err := n.SetNote(ctx, a, "long", make([]byte, storage.MaxNoteBytes+1)); err == nil {
		t.Error("SetNote accepted a note beyond MaxNoteBytes")
	}
	if s, err := n.FileStats(); err != nil || s.Size == 0 || s.UnappliedLogChanges == 0 {
		t.Errorf("file stats %+v (%v), want changes in the log", s, err)
	}
	must(t, n.Close())
	if err := n.SetNote(ctx, a, "rest", nil); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("SetNote after Close: %v, want %v", err, storage.ErrClosed)
	}
	must(t, Compact(path))
	if got := listNotes(t, openNotes(t, path)); !maps.Equal(got, want) {
		t.Errorf("after Close and Compact: notes %v, want %v", got, want)
	}
}

// TestNotesAndStore: a Store reads and changes the notes of a NoteStore, and the other way round. The
// Store's URLs stay.
func TestNotesAndStore(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	path := storePath(dir)
	e := newEntry(t, "https://a.example/page")
	o := e.URL.Origin()
	for round, want := 0, ""; round < 3; round++ {
		s := openStore(t, dir, Options{})
		if got := string(must1(s.ReadNote(ctx, o, "key"))); got != want {
			t.Errorf("the store reads %q, want %q", got, want)
		}
		addEntries(t, s, e)
		want = fmt.Sprint(round)
		must(t, s.SetNote(ctx, o, "key", []byte(want)))
		must(t, s.Close())
		n := openNotes(t, path)
		if got := string(must1(n.ReadNote(ctx, o, "key"))); got != want {
			t.Errorf("the notes read %q, want %q", got, want)
		}
		want += " again"
		must(t, n.SetNote(ctx, o, "key", []byte(want)))
		must(t, n.Close())
	}
	s := openStore(t, dir, Options{})
	defer s.Close()
	if c := must1(s.Counts(ctx)); c.QueuedURLs != 1 || c.SeenURLs != 1 {
		t.Errorf("counts %+v, want the URL", c)
	}
	if l := mustLease(t, s, time.Now(), 1); len(l) != 1 || l[0].URL != e.URL {
		t.Errorf("leased %v, want %v", l, e.URL)
	}
}

// pastFiles is the directory of files that killed processes of an old commit left: see its README.
var pastFiles = filepath.Join("..", "..", "cmd", "decorum", "testdata", "past")

// decompress returns the decompressed contents of a file in pastFiles.
func decompress(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(filepath.Join(pastFiles, name))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	z, err := zstd.NewReader(f)
	must(t, err)
	t.Cleanup(z.Close)
	return z
}

// unpackPastRobots returns the path of a copy of data/robots.db from an archive in pastFiles.
func unpackPastRobots(t *testing.T, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "robots.db")
	archive := tar.NewReader(decompress(t, name))
	for {
		h, err := archive.Next()
		must(t, err)
		if h.Name != "data/robots.db" {
			continue
		}
		f, err := os.Create(path)
		must(t, err)
		_, err = io.Copy(f, archive)
		must(t, errors.Join(err, f.Close()))
		return path
	}
}

// TestNotesOfThePast: a store that an old commit left when it was killed has all notes that the commit
// exported, byte for byte.
func TestNotesOfThePast(t *testing.T) {
	want := make(map[string]string)
	for d := json.NewDecoder(decompress(t, "export.jsonl.zst")); ; {
		var line struct {
			Type, Store, Origin, Key string
			Value                    []byte
		}
		err := d.Decode(&line)
		if err == io.EOF {
			break
		}
		must(t, err)
		if line.Type == "note" && line.Store == "robots" {
			want[line.Origin+" "+line.Key] = string(line.Value)
		}
	}
	if len(want) == 0 {
		t.Fatal("the export has no notes")
	}
	if got := listNotes(t, openNotes(t, unpackPastRobots(t, "crawl.tar.zst"))); !maps.Equal(got, want) {
		t.Errorf("notes %q, want what was exported, %q", got, want)
	}
}

// TestNotesOfAPastDaemon: the store of a daemon of an old commit that was killed has due times of hosts
// ("rest") and robots.txt records.
func TestNotesOfAPastDaemon(t *testing.T) {
	kinds := make(map[string]int)
	for key := range listNotes(t, openNotes(t, unpackPastRobots(t, "daemon.tar.zst"))) {
		_, key, _ = strings.Cut(key, " ")
		kind, _, _ := strings.Cut(key, " ")
		kinds[kind]++
	}
	if kinds["rest"] == 0 || kinds["robots"] == 0 {
		t.Errorf("notes by kind: %v, want notes of both kinds, rest and robots", kinds)
	}
}
