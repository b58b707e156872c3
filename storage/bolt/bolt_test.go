package bolt

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/storagetest"
)

// settings are the ways in which the suite is run.
var settings = []struct {
	name string
	opts Options
}{
	{"defaults", Options{}},
	{"small", Options{Window: 2, Cached: 4, FlushSize: 5, Held: 30, FlushEvery: time.Millisecond, noSync: true, foldPages: 8, Hosts: 1}},
}

func TestStore(t *testing.T) {
	for _, tt := range settings {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.Run(t, func(t testing.TB) storage.Store { return open(t, t.TempDir(), tt.opts) })
		})
	}
}

func TestStoreDurable(t *testing.T) {
	for _, tt := range settings {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.RunDurable(t, func(t testing.TB, dir string) storage.Store { return open(t, dir, tt.opts) })
		})
	}
}

func open(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(dir, "frontier.db"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// crash ends a store as a kill would, or else in order.
func crash(t *testing.T, s *Store, unclean bool) {
	t.Helper()
	if !unclean {
		must(t, s.Close())
		return
	}
	close(s.quit)
	<-s.ended
	must(t, s.db.Close())
}

// entry returns an entry of the URL that the format makes.
func entry(t testing.TB, format string, args ...any) storage.Entry {
	t.Helper()
	u, err := decorum.ParseURL(fmt.Sprintf(format, args...))
	must(t, err)
	return storage.Entry{URL: u, Source: storage.Link, Class: storage.Usual}
}

func add(t testing.TB, s *Store, entries ...storage.Entry) {
	t.Helper()
	_, err := s.Add(t.Context(), entries, 0)
	must(t, err)
}

func leaseAll(t testing.TB, s *Store, now time.Time, max int) []storage.Lease {
	t.Helper()
	leases, _, err := s.Lease(t.Context(), now, time.Minute, max)
	must(t, err)
	return leases
}
