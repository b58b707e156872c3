package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// openErrors are kinds of damage to an intact store, with a part of the error that Open must return.
var openErrors = []struct {
	name   string
	damage func(t *testing.T, path string)
	want   string
}{
	{"in use", func(t *testing.T, path string) {
		s, err := Open(path, Options{})
		must(t, err)
		t.Cleanup(func() { s.Close() })
	}, fmt.Sprintf("in use by process %d: ", os.Getpid())},
	{"not a bbolt file", func(t *testing.T, path string) {
		must(t, os.WriteFile(path, bytes.Repeat([]byte("notes of mine\n"), 10_000), 0o600))
	}, "is not the store of a crawl, or it is damaged"},
	{"a short text", func(t *testing.T, path string) {
		must(t, os.WriteFile(path, []byte("note"), 0o600))
	}, "frontier.db"},
	{"a bbolt file of another program", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		editFile(t, path, func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("theirs"))
			return err
		})
	}, `a bbolt file of another program (bucket "theirs")`},
	{"a newer format", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error {
			return writeMeta(tx, map[string][]byte{keyFormat: encodeUvarint(formatVersion + 1)})
		})
	}, "format 5 is newer than this program's, 4: update the program"},
	{"a format from before the first release", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(bucketMeta)).Put([]byte(keyFormat), encodeUvarint(2))
		})
	}, "format 2 is from before the first release, and decorum " + decorum.Version() +
		" reads formats 3 to 4: use the program that wrote the file"},
	{"no format", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error { return writeMeta(tx, map[string][]byte{keyFormat: nil}) })
	}, "damaged record"},
	{"a bucket is missing", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(bucketFingerprints)) })
	}, `bucket "prints" is missing`},
	{"a damaged host", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error {
			return newChecksummedBucket(tx, bucketHosts).setOrDelete(numberKey(1), []byte{0xff})
		})
	}, `host "a.example": damaged record`},
	{"a host's record of another host", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketHosts))
			return b.Put(numberKey(1), bytes.Clone(b.Get(numberKey(2))))
		})
	}, `host "a.example": damaged record`},
	{"an origin of two numbers", func(t *testing.T, path string) {
		editFile(t, path, func(tx *bbolt.Tx) error {
			b := newChecksummedBucket(tx, bucketOrigins)
			return b.setOrDelete(numberKey(3), must1(b.get(numberKey(1))))
		})
	}, "origin https://a.example has no entry under its name"},
	{"cut short", func(t *testing.T, path string) {
		must(t, os.Truncate(path, int64(20*os.Getpagesize()))) // bbolt keeps unused space at the end
	}, "frontier.db"},
	{"pages overwritten", func(t *testing.T, path string) {
		b := must1(os.ReadFile(path))
		for i := 2 * os.Getpagesize(); i < len(b); i++ {
			b[i] = byte(i * 7)
		}
		must(t, os.WriteFile(path, b, 0o600))
	}, "frontier.db"},
}

func storePath(dir string) string { return filepath.Join(dir, "frontier.db") }

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, tt := range openErrors {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := storePath(dir)
			fillStore(t, dir)
			backup := must1(os.ReadFile(file))
			tt.damage(t, file)
			s, err := Open(file, Options{})
			if err == nil {
				s.Close()
				t.Fatal("Open returned no error")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q", err, tt.want)
			}
			if tt.name == "in use" {
				return
			}
			must(t, os.WriteFile(file, backup, 0o600)) // check that the failed Open left the file unlocked
			must(t, openStore(t, dir, Options{}).Close())
		})
	}
}

// fillStore makes a store with 2,000 URLs of two hosts.
func fillStore(t *testing.T, dir string) {
	t.Helper()
	s := openStore(t, dir, Options{noSync: true})
	var entries []storage.Entry
	for i := range 2000 {
		entries = append(entries, newEntry(t, "https://%c.example/%d", 'a'+rune(i%2), i))
	}
	_, err := s.Add(t.Context(), entries, 0)
	must(t, err)
	checkpointAll(s)
	must(t, s.Close())
}

func editFile(t *testing.T, path string, change func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(change))
	must(t, db.Close())
}

func TestOpenWithoutDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "frontier.db")
	if _, err := Open(file, Options{}); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("error %v, want one of a missing directory", err)
	}
}

func unwrapAll(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok || u.Unwrap() == nil {
			return err
		}
		err = u.Unwrap()
	}
}

// TestRestart: after an unclean stop every host, known or new, is due at the earliest after the longer of
// PostInterruptionDelay and its LostVisitDelay from Open on.
func TestRestart(t *testing.T) {
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	opts := Options{PostInterruptionDelay: 10 * time.Second, Now: func() time.Time { return now }, noSync: true}
	tests := []struct {
		name         string
		clean        bool
		slow, others time.Duration // after now
	}{
		{"after a clean stop no host is postponed", true, 0, 0},
		{"after a crash", false, time.Minute, 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, opts)
			addEntries(t, s, newEntry(t, "https://slow.example/1"), newEntry(t, "https://slow.example/2"),
				newEntry(t, "https://known.example/"))
			for _, l := range mustLease(t, s, now, 1) {
				must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Requeue}}))
			}
			for _, l := range mustLease(t, s, now, 2) {
				if l.URL.Origin().Host() == "slow.example" {
					must(t, s.Ack(t.Context(),
						[]storage.Ack{{Lease: l,
							HostState: &storage.HostState{Due: now, LostVisitDelay: time.Minute}}}))
				} else {
					must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: storage.Requeue}}))
				}
			}
			must(t, s.Flush(t.Context()))
			stopStore(t, s, !tt.clean)
			s = openStore(t, dir, opts)
			defer s.Close()
			addEntries(t, s, newEntry(t, "https://new.example/"))
			for host, delay := range map[string]time.Duration{"slow.example": tt.slow, "known.example": tt.others,
				"new.example": tt.others} {
				if due := s.engine.index.hosts[host].Due; due.After(now.Add(delay)) ||
					delay > 0 && due.Before(now.Add(delay)) {
					t.Errorf("%s is due %v after Open, want %v", host, due.Sub(now), delay)
				}
			}
		})
	}
}

// TestCrashDelayOutlivesAnotherStop: a clean stop during the delay after a crash does not shorten it.
func TestCrashDelayOutlivesAnotherStop(t *testing.T) {
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	opts := Options{PostInterruptionDelay: 10 * time.Second, Now: func() time.Time { return now }, noSync: true}
	dir := t.TempDir()
	stopStore(t, openStore(t, dir, opts), true)
	must(t, openStore(t, dir, opts).Close()) // the delay after the crash has begun
	s := openStore(t, dir, opts)
	defer s.Close()
	addEntries(t, s, newEntry(t, "https://new.example/"))
	if leases := mustLease(t, s, now.Add(9*time.Second), 1); len(leases) > 0 {
		t.Error("a host was leased within PostInterruptionDelay of a crash")
	}
}

// TestCloseDelaysLeasedHosts: Close postpones a host with a leased URL by its LostVisitDelay.
func TestCloseDelaysLeasedHosts(t *testing.T) {
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	opts := Options{Now: func() time.Time { return now }, noSync: true}
	dir := t.TempDir()
	s := openStore(t, dir, opts)
	addEntries(t, s, newEntry(t, "https://a.example/1"), newEntry(t, "https://a.example/2"))
	l := mustLease(t, s, now, 1)[0]
	must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l,
		HostState: &storage.HostState{Due: now, LostVisitDelay: time.Minute}}}))
	mustLease(t, s, now, 1)
	must(t, s.Close())
	s = openStore(t, dir, opts)
	defer s.Close()
	if due := s.engine.index.hosts["a.example"].Due; !due.Equal(now.Add(time.Minute)) {
		t.Errorf("due %v after Close, want %v", due.Sub(now), time.Minute)
	}
}

// TestFirstVisitIsLeasedAtClose: Close postpones a host by PostInterruptionDelay if its first visit is
// leased, and it has no LostVisitDelay yet.
func TestFirstVisitIsLeasedAtClose(t *testing.T) {
	const delay = time.Minute
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	opts := Options{PostInterruptionDelay: delay, noSync: true, Now: func() time.Time { return now }}
	dir := t.TempDir()
	s := openStore(t, dir, opts)
	addEntries(t, s, newEntry(t, "https://a.example/"), newEntry(t, "https://b.example/"))
	if l := mustLease(t, s, now, 1); len(l) != 1 || l[0].URL.Origin().Host() != "a.example" {
		t.Fatalf("leased %v, want one of a.example", l)
	}
	must(t, s.Close())
	s = openStore(t, dir, opts)
	defer s.Close()
	if l := mustLease(t, s, now.Add(delay-1), 9); len(l) != 1 || l[0].URL.Origin().Host() != "b.example" {
		t.Errorf("before the delay is over: %v, want only the host that was not visited", l)
	}
	if l := mustLease(t, s, now.Add(delay), 9); len(l) != 1 {
		t.Errorf("after the delay: %v, want one", l)
	}
}
