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

// suiteOptions are the options with which the suite of package storagetest runs.
var suiteOptions = []struct {
	name string
	opts Options
}{
	{"defaults", Options{}},
	{"small", Options{PrefetchCount: 2, MaxCachedURLs: 4, FlushAfterChanges: 5, MaxBufferedChanges: 30,
		FlushEvery: time.Millisecond, noSync: true, maxCheckpointPages: 8, MaxHostsInMemory: 1}},
}

func TestStore(t *testing.T) {
	for _, tt := range suiteOptions {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.Run(t, func(t testing.TB) storage.Store { return openStore(t, t.TempDir(), tt.opts) })
		})
	}
}

func TestStoreDurable(t *testing.T) {
	for _, tt := range suiteOptions {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.RunDurable(t, func(t testing.TB, dir string) storage.Store {
				return openStore(t, dir, tt.opts)
			})
		})
	}
}

func openStore(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(filepath.Join(dir, "frontier.db"), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stopStore stops a store without a last write, as a kill would, or closes it.
func stopStore(t *testing.T, s *Store, asCrash bool) {
	t.Helper()
	if !asCrash {
		must(t, s.Close())
		return
	}
	close(s.engine.committer.quit)
	<-s.engine.committer.done
	must(t, s.engine.file.db.Close())
}

// newEntry returns an entry whose URL is the formatted string.
func newEntry(t testing.TB, format string, args ...any) storage.Entry {
	t.Helper()
	u, err := decorum.ParseURL(fmt.Sprintf(format, args...))
	must(t, err)
	return storage.Entry{URL: u, Source: storage.SourceLink, PriorityClass: storage.ClassNormal}
}

func addEntries(t testing.TB, s *Store, entries ...storage.Entry) {
	t.Helper()
	_, err := s.Add(t.Context(), entries, 0)
	must(t, err)
}

func mustLease(t testing.TB, s *Store, now time.Time, max int) []storage.Lease {
	t.Helper()
	leases, _, err := s.Lease(t.Context(), now, time.Minute, max)
	must(t, err)
	return leases
}
