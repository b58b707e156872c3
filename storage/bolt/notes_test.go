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

// openNotes opens a file of notes, which the end of the test closes.
func openNotes(t *testing.T, path string) *NoteStore {
	t.Helper()
	n, err := OpenNotes(path, Options{OnDamaged: func(err error) { t.Error(err) }})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// listNotes returns all notes, by origin and key.
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

// What is set is there at once, after Flush and after Close; a nil value deletes.
func TestNotes(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "robots.db"), t.Context()
	n := openNotes(t, path)
	a, b := newEntry(t, "https://a.example/").URL.Origin(), newEntry(t, "http://b.example/").URL.Origin()
	want := map[string]string{a.String() + " rest": "1", b.String() + " robots": "", decorum.Origin{}.String() + " own": "2"}
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
		t.Error("a note that is too long was kept")
	}
	if s, err := n.FileStats(); err != nil || s.Size == 0 || s.UnappliedLogChanges == 0 {
		t.Errorf("file stats %+v (%v), want a log that is not folded", s, err)
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

// A Store reads and changes what NoteStore wrote, and the other way round; its URLs stay.
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

// pastFiles are the files that killed processes of an old commit left: see the README there.
var pastFiles = filepath.Join("..", "..", "cmd", "decorum", "testdata", "past")

// decompress returns what a file of the past holds.
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

// unpackPastRobots returns a copy of data/robots.db out of an archive of the past.
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

// The notes that a store of an old commit kept when it was killed are all there: those that the
// commit exported, byte for byte.
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
		t.Fatal("nothing was exported")
	}
	if got := listNotes(t, openNotes(t, unpackPastRobots(t, "crawl.tar.zst"))); !maps.Equal(got, want) {
		t.Errorf("notes %q, want what was exported, %q", got, want)
	}
}

// The rests of hosts and the robots.txt records that a killed daemon kept are there, too.
func TestNotesOfAPastDaemon(t *testing.T) {
	kinds := make(map[string]int)
	for key := range listNotes(t, openNotes(t, unpackPastRobots(t, "daemon.tar.zst"))) {
		_, key, _ = strings.Cut(key, " ")
		kind, _, _ := strings.Cut(key, " ")
		kinds[kind]++
	}
	if kinds["rest"] == 0 || kinds["robots"] == 0 {
		t.Errorf("notes by kind: %v, want rests and robots.txt records", kinds)
	}
}
