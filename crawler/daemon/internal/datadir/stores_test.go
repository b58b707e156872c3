package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Whatever a frontier has written to the disk, the robots.txt files that were learnt before are on the disk,
// too.
func TestRobotsAreWrittenFirst(t *testing.T) {
	p := project.Default()
	p.Store.Path = t.TempDir()
	recorded := 0
	s, err := OpenStores(p, bolt.Options{FlushEvery: time.Hour, BeforeWrite: func() error { recorded++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	u, err := decorum.ParseURL("https://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Frontier.Add(t.Context(), []storage.Entry{{URL: u}}, 0)
	if err = errors.Join(err, s.Robots.SetNote(t.Context(), u.Origin(), "rules", []byte("allow")),
		s.Frontier.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	killed, err := os.ReadFile(filepath.Join(p.Store.Path, RobotsFile))
	copied := filepath.Join(t.TempDir(), RobotsFile)
	if err := errors.Join(err, os.WriteFile(copied, killed, 0o600), s.Close()); err != nil {
		t.Fatal(err)
	}
	if recorded == 0 {
		t.Error("BeforeWrite was not called")
	}
	left, err := OpenBoltStore(copied, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if note, err := left.ReadNote(t.Context(), u.Origin(), "rules"); err != nil || string(note) != "allow" {
		t.Errorf("after a crash the note is %q (%v)", note, err)
	}
}
