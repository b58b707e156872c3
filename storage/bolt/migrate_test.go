package bolt

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// unpackFormat1 writes a file of format 1, as its program left it, into a directory:
// 5 origins with 400 URLs each, of which http://a.example has 30 that were
// visited: 5 of each outcome, in turn.
func unpackFormat1(t *testing.T) (dir string) {
	t.Helper()
	return unpackFixture(t, "testdata/format1.db.gz")
}

// unpackFixture unpacks a file into a directory.
func unpackFixture(t testing.TB, name string) (dir string) {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	dir = t.TempDir()
	must(t, os.WriteFile(storePath(dir), must1(io.ReadAll(z)), 0o600))
	return dir
}

func TestMigrateFormat1(t *testing.T) {
	dir := unpackFormat1(t)
	s := openStore(t, dir, Options{noSync: true})
	checkMigrated(t, s)
	must(t, s.Close())
	s = openStore(t, dir, Options{noSync: true})
	defer s.Close()
	checkMigrated(t, s)
	must(t, s.db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(bucketFormat1Seen)) != nil {
			t.Error("the old seen set is still there")
		}
		return nil
	}))
	now := time.Date(2100, 1, 2, 0, 0, 0, 0, time.UTC)
	o := newEntry(t, "http://a.example/").URL.Origin()
	rescheduled := 0
	for i := range 30 {
		n, err := s.RescheduleModified(t.Context(), now, []storage.SitemapLastmod{{URL: newEntry(t, "%v/%d", o, i).URL, Modified: now}})
		must(t, err)
		rescheduled += n
	}
	if rescheduled != 5 {
		t.Errorf("%d pages were recalled, want 5", rescheduled)
	}
	if n, err := s.Unpark(t.Context(), o, func(storage.Entry) bool { return true }); n != 5 || err != nil {
		t.Errorf("%d were revived (%v), want 5", n, err)
	}
	leases := mustLease(t, s, now, 4) // one of each host
	if len(leases) != 4 {
		t.Errorf("%d leases, want 4", len(leases))
	}
}

// A migration that ends between two of its transactions goes on.
func TestMigrateFormat1InParts(t *testing.T) {
	for parts := range 4 {
		dir := unpackFormat1(t)
		for range parts {
			editFile(t, storePath(dir), func(tx *bbolt.Tx) error {
				_, err := migrateFormat1(tx)
				return err
			})
		}
		s := openStore(t, dir, Options{noSync: true})
		checkMigrated(t, s)
		must(t, s.Close())
	}
}

func checkMigrated(t *testing.T, s *Store) {
	t.Helper()
	c := must1(s.Counts(t.Context()))
	if want := (storage.Counts{Hosts: 4, DueHosts: c.DueHosts, QueuedURLs: 1980, ParkedURLs: 5, SeenURLs: 2000, SuspendedURLs: c.SuspendedURLs, AwaitingRevisit: 5}); c != want {
		t.Errorf("counts %+v, want %+v", c, want)
	}
	for _, name := range []string{"https://a.example", "http://a.example", "https://b.example", "https://c.example", "https://d.example:81"} {
		o := newEntry(t, "%s/", name).URL.Origin()
		for i := range 400 {
			if !must1(s.HasSeen(t.Context(), newEntry(t, "%s/%d", name, i).URL)) {
				t.Fatalf("%s/%d is not known", name, i)
			}
		}
		if note := string(must1(s.ReadNote(t.Context(), o, "robots"))); note != "note of "+name {
			t.Errorf("note of %s: %q", name, note)
		}
		i, found, err := s.Origin(t.Context(), o)
		must(t, err)
		queued := 400
		if name == "http://a.example" {
			queued = 380
		}
		if !found || i.Queued != queued || i.Seen != 400 || i.Host.Delay != time.Second || i.Suspended != (name == "https://c.example") {
			t.Errorf("origin %+v, met: %t", i, found)
		}
	}
	if known := must1(s.HasSeen(t.Context(), newEntry(t, "https://a.example/400").URL)); known {
		t.Error("a URL is known that was never met")
	}
}

// A migration says what is wrong.
func TestMigrateDamaged(t *testing.T) {
	for name, damage := range map[string]func(*bbolt.Tx) error{
		"origin": func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucketOrigins)).Put([]byte("=https://x.example"), []byte{1})
		},
		"fingerprint": func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucketFormat1Seen)).Put([]byte("short"), nil) },
		"bucket":      func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucketHosts)) },
	} {
		dir := unpackFormat1(t)
		editFile(t, storePath(dir), damage)
		if s, err := Open(storePath(dir), Options{}); err == nil {
			s.Close()
			t.Errorf("%s: Open returned no error", name)
		} else if want := fmt.Sprintf("open %s: %s ", storePath(dir), name); len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// TestLongRequestsAreNotAllCached: the heads of queues are bounded by how long
// their URLs are, and not by their number alone.
func TestLongRequestsAreNotAllCached(t *testing.T) {
	const cached = 1 << 12 // of 256 bytes: 1 MiB
	s := openStore(t, t.TempDir(), Options{MaxCachedURLs: cached, noSync: true})
	defer s.Close()
	now, body := time.Now(), make([]byte, 100<<10)
	for i := range 300 {
		e := newEntry(t, "https://h%d.example/%d", i%20, i)
		e.Request = &storage.Request{Method: "POST", Body: body}
		addEntries(t, s, e)
	}
	for range 200 {
		for _, l := range mustLease(t, s, now, 5) {
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Requeue}}))
		}
		s.mu.Lock()
		bytes := 0
		for _, o := range s.origins {
			for _, l := range o.lanes {
				for _, i := range l.head {
					bytes += len(i.value)
				}
			}
		}
		s.mu.Unlock()
		if bytes > 256*cached {
			t.Fatalf("%d bytes are cached, the limit is about %d", bytes, 256*cached)
		}
	}
}
