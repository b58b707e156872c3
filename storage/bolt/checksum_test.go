package bolt

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// unpackFormat3 returns a directory with a file that a killed program of format 3 left: a tenth of its
// changes are in the log. want is what that program read from the file, in the form of dumpStoreFully.
func unpackFormat3(t testing.TB) (dir string, want []string) {
	t.Helper()
	text := must1(os.ReadFile("testdata/format3.txt"))
	f := must1(os.Open("testdata/format3.db.gz"))
	defer f.Close()
	z := must1(gzip.NewReader(f))
	dir = t.TempDir()
	must(t, os.WriteFile(storePath(dir), must1(io.ReadAll(z)), 0o600))
	return dir, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

var migrateOpts = Options{FlushEvery: time.Hour, noSync: true, Now: func() time.Time { return openTime }}

// TestMigrateFormat3: after the migration the store has the same contents, and every value has a
// checksum.
func TestMigrateFormat3(t *testing.T) {
	dir, want := unpackFormat3(t)
	s := openWithoutCommitter(t, dir, migrateOpts)
	if diff := cmp.Diff(want, dumpStoreFully(t, s)); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	s.engine.journal.unchangedSinceWrite, s.engine.opts.MaxBufferedChanges = true, 1
	checkpointAll(s)
	if diff := cmp.Diff(want, dumpStoreFully(t, s)); diff != "" {
		t.Errorf("checkpointed: -before +after:\n%s", diff)
	}
	verifyAllChecksums(t, s)
	must(t, s.engine.file.db.Close())
}

// verifyAllChecksums checks the checksum of every value in the file.
func verifyAllChecksums(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.engine.file.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				if _, err := verifyAndTrimChecksum(key, value); err != nil {
					t.Errorf("%s %x: %v", name, key, err)
				}
				return nil
			})
		})
	}))
}

// TestMigrateFormat3InParts: a migration that is interrupted after any of its transactions continues
// at the next Open. Until it is complete, a program of format 3 refuses the file.
func TestMigrateFormat3InParts(t *testing.T) {
	dir, want := unpackFormat3(t)
	parts := 0
	for done := false; !done; parts++ {
		editFile(t, storePath(dir), func(tx *bbolt.Tx) (err error) {
			done, err = migrateBatch(tx, 1500)
			return err
		})
		editFile(t, storePath(dir), func(tx *bbolt.Tx) error {
			if n, size := decodeNumber(tx.Bucket([]byte(bucketMeta)).Get([]byte(keyFormat))); n != formatVersion ||
				size <= 0 {
				t.Errorf("after part %d the format is %d", parts, n)
			}
			return nil
		})
		if parts%5 != 0 && !done {
			continue
		}
		copied := t.TempDir()
		must(t, os.WriteFile(storePath(copied), must1(os.ReadFile(storePath(dir))), 0o600))
		if err := Compact(storePath(copied)); parts == 0 && err == nil {
			t.Error("Compact accepted a file that is migrated in part")
		}
		s := openWithoutCommitter(t, copied, migrateOpts)
		if diff := cmp.Diff(want, dumpStoreFully(t, s)); diff != "" {
			t.Fatalf("after part %d: -before +after:\n%s", parts, diff)
		}
		verifyAllChecksums(t, s)
		must(t, s.engine.file.db.Close())
	}
	if parts < 15 {
		t.Errorf("%d parts: the test sees too little", parts)
	}
}

// decodeNumber decodes a number as programs of all formats do: a varint.
func decodeNumber(value []byte) (n uint64, size int) {
	for i, c := range value {
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

// A damageFunc damages one record of a file: it returns the key and value to write in its place.
type damageFunc func(r *rand.Rand, key, value []byte) (newKey, newValue []byte)

var damageKinds = map[string]damageFunc{
	"a bit": func(r *rand.Rand, key, value []byte) ([]byte, []byte) {
		value[r.IntN(len(value))] ^= 1 << r.IntN(8)
		return key, value
	},
	"a byte": func(r *rand.Rand, key, value []byte) ([]byte, []byte) {
		value[r.IntN(len(value))] += byte(1 + r.IntN(255))
		return key, value
	},
	"cut": func(r *rand.Rand, key, value []byte) ([]byte, []byte) { return key, value[:r.IntN(len(value))] },
	"zeros": func(r *rand.Rand, key, value []byte) ([]byte, []byte) {
		clear(value[r.IntN(len(value)):])
		return key, value
	},
	"the key": func(r *rand.Rand, key, value []byte) ([]byte, []byte) {
		key[r.IntN(len(key))] ^= 1 << r.IntN(8)
		return key, value
	},
}

// damageRandomRecord damages a record of a random bucket, and describes the damage.
func damageRandomRecord(t *testing.T, r *rand.Rand, file string) (what string) {
	names := []string{bucketURLs, bucketURLs, bucketURLs, bucketLog, bucketLog,
		bucketFingerprints, bucketNames, bucketHosts,
		bucketOrigins, bucketRevisits, bucketNotes, bucketMeta, bucketFiles}
	kinds := []string{"a bit", "a byte", "cut", "zeros", "the key"}
	db := must1(bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true}))
	defer db.Close()
	must(t, db.Update(func(tx *bbolt.Tx) error {
		for {
			name, kind := names[r.IntN(len(names))], kinds[r.IntN(len(kinds))]
			b := tx.Bucket([]byte(name))
			n := b.Stats().KeyN
			if n == 0 {
				continue
			}
			c := b.Cursor()
			key, value := c.First()
			for range r.IntN(n) {
				key, value = c.Next()
			}
			key, value = bytes.Clone(key), bytes.Clone(value)
			newKey, newValue := damageKinds[kind](r, bytes.Clone(key), bytes.Clone(value))
			if bytes.Equal(key, newKey) && bytes.Equal(value, newValue) {
				continue // the record had zeros already
			}
			what = fmt.Sprintf("%s of %s %x", kind, name, key)
			if err := b.Delete(key); err != nil {
				return err
			}
			return b.Put(newKey, newValue)
		}
	}))
	return what
}

// TestDamagedRecordsChangeNoURL: whichever record of a file is damaged, the store leases no URL that was
// not in the file, and reports an error or damage if it does not lease one that was.
func TestDamagedRecordsChangeNoURL(t *testing.T) {
	const rounds = 200
	dir := t.TempDir()
	want := writeDamageableFile(t, dir)
	intact := must1(os.ReadFile(storePath(dir)))
	refused, reports := 0, 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		must(t, os.WriteFile(storePath(dir), intact, 0o600))
		what := damageRandomRecord(t, r, storePath(dir))
		got, reported, err := leaseEverything(t, dir)
		missing := 0
		for url := range want {
			if !got[url] {
				missing++
			}
		}
		for url := range got {
			if !want[url] {
				t.Errorf("round %d, %s: %s was leased, which is not in the file", seed, what, url)
			}
		}
		if missing > 0 && reported == 0 && err == nil {
			t.Errorf("round %d, %s: %d URLs are missing without a report or an error", seed, what, missing)
		}
		if err != nil {
			refused++
		}
		if reported > 0 {
			reports++
		}
	}
	t.Logf("%d damages: %d refused, %d reported", rounds, refused, reports)
	if refused == 0 || reports == 0 {
		t.Error("the test sees too little")
	}
}

// writeDamageableFile writes a file with URLs in several lanes, some of them checkpointed and some in the
// log, and returns the URLs that Lease can return.
func writeDamageableFile(t *testing.T, dir string) (urls map[string]bool) {
	t.Helper()
	s := openWithoutCommitter(t, dir, Options{noSync: true, Now: func() time.Time { return openTime },
		ListOutputFiles: func() []OutputFileExtent {
			return []OutputFileExtent{{Path: "pages.jsonl", SyncedSize: 1000}}
		}})
	urls = make(map[string]bool)
	now := openTime.AddDate(1, 0, 0)
	for i := range 300 {
		e := newEntry(t, "https://h%d.example/path/%d?q=%d", i%6, i, i)
		if i%7 == 0 {
			e.Request = &storage.NonGETRequest{Method: "POST", Body: []byte("x=1")}
		}
		addEntries(t, s, e)
		must(t, s.SetNote(t.Context(), e.URL.Origin(), fmt.Sprint("key", i%5), []byte("value")))
		urls[e.URL.String()] = true
		if i%30 == 29 {
			for _, l := range mustLease(t, s, now, 4) {
				outcome := []storage.AckOutcome{storage.RetryAt, storage.RevisitAt, storage.Requeue}[i/30%3]
				if outcome == storage.RevisitAt && l.Request != nil {
					outcome = storage.RetryAt
				}
				must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l, Outcome: outcome, NotBefore: now.Add(time.Hour)}}))
			}
		}
		if i == 200 {
			checkpointAll(s)
		}
		s.engine.committer.commit()
	}
	must(t, s.engine.file.db.Close())
	must(t, Compact(storePath(dir))) // the file is copied for each round
	return urls
}

// leaseEverything opens a file, leases all its URLs and reads its notes and seen set. It returns the
// leased URLs, the number of damage reports, and the first error.
func leaseEverything(t *testing.T, dir string) (urls map[string]bool, reported int, err error) {
	s, err := Open(storePath(dir), Options{noSync: true, FlushEvery: time.Hour, OnDamaged: func(error) { reported++ },
		Now: func() time.Time { return openTime }})
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	urls = make(map[string]bool)
	now := openTime.AddDate(2, 0, 0)
	for idle := 0; idle < 3; now = now.AddDate(0, 1, 0) {
		leases, _, err := s.Lease(t.Context(), now, time.Hour, 100)
		if err != nil {
			return urls, reported, err
		}
		if idle++; len(leases) > 0 {
			idle = 0
		}
		for _, l := range leases {
			urls[l.URL.String()] = true
			if err := s.Ack(t.Context(), []storage.Ack{{Lease: l}}); err != nil {
				return urls, reported, err
			}
		}
	}
	for h := range 6 { // damage in notes and in the seen set is found when they are read
		o := newEntry(t, "https://h%d.example/", h).URL.Origin()
		if err := s.OriginNotes(t.Context(), o, func(string, []byte) bool { return true }); err != nil {
			return urls, reported, err
		}
		if err := s.SeenURLFingerprints(t.Context(), o, func(uint64) bool { return true }); err != nil {
			return urls, reported, err
		}
	}
	if c := must1(s.Counts(t.Context())); c.QueuedURLs+c.AwaitingRevisit > 0 {
		return urls, reported, fmt.Errorf("%+v is left", c)
	}
	return urls, reported, s.Flush(t.Context())
}

// TestDamagedSeenSet: the store queues a page again if a damaged part of the seen set may have it. It
// does not queue an unsafe request that the part may have, even after it has written the part again. It
// reports the damage once.
func TestDamagedSeenSet(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir)
	editFile(t, storePath(dir), func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketFingerprints))
		var keys [][]byte
		must(t, b.ForEach(func(key, _ []byte) error { keys = append(keys, bytes.Clone(key)); return nil }))
		for _, key := range keys {
			value := bytes.Clone(b.Get(key))
			value[3] ^= 0x10
			must(t, b.Put(key, value))
		}
		return nil
	})
	reports := 0
	s := openWithoutCommitter(t, dir, Options{noSync: true, OnDamaged: func(error) { reports++ }})
	again := 0
	for i := range 2000 {
		e := newEntry(t, "https://%c.example/%d", 'a'+rune(i%2), i)
		again += storage.CountAdded(must1(s.Add(t.Context(), []storage.Entry{e}, 0)))
	}
	parts := reports
	if parts == 0 || again == 0 || again > parts {
		t.Errorf("%d of 2000 URLs were queued again, %d reports of damage: want one fingerprint of each part", again,
			parts)
	}
	post := newEntry(t, "https://a.example/new")
	post.Request = &storage.NonGETRequest{Method: "POST"}
	if n := storage.CountAdded(must1(s.Add(t.Context(), []storage.Entry{post}, 0))); n != 0 {
		t.Error("an unsafe request that may have been sent was queued")
	}
	addEntries(t, s, newEntry(t, "https://a.example/new"))
	if reports != parts {
		t.Errorf("%d reports, want %d: each once", reports, parts)
	}
	for i := range 4000 { // enough that each part is written again
		addEntries(t, s, newEntry(t, "https://%c.example/more/%d", 'a'+rune(i%2), i))
	}
	s.engine.journal.unchangedSinceWrite, s.engine.opts.MaxBufferedChanges = true, 1
	checkpointAll(s)
	for i := range 100 {
		post := newEntry(t, "https://a.example/form/%d", i)
		post.Request = &storage.NonGETRequest{Method: "POST"}
		if n := storage.CountAdded(must1(s.Add(t.Context(), []storage.Entry{post}, 0))); n != 0 {
			t.Fatalf("request %d, which may have been sent, was queued after the damaged part was written again", i)
		}
	}
	must(t, s.engine.file.db.Close())
}

// TestOutputFiles: the store writes the lengths of output files with the changes, and has them after a
// crash.
func TestOutputFiles(t *testing.T) {
	dir := t.TempDir()
	files := []OutputFileExtent{{Path: "pages.jsonl", SyncedSize: 100, Serial: 3},
		{Path: "/data/warc", Name: "a.warc.gz", SyncedSize: 7}}
	synced := 0
	s := openStore(t, dir, Options{FlushEvery: time.Hour, noSync: true, BeforeWrite: func() error {
		synced++
		return nil
	},
		ListOutputFiles: func() []OutputFileExtent {
			if synced == 0 {
				t.Error("ListOutputFiles was called before BeforeWrite")
			}
			return files
		}})
	addEntries(t, s, newEntry(t, "https://a.example/1"))
	must(t, s.Flush(t.Context()))
	files = []OutputFileExtent{{Path: "pages.jsonl", SyncedSize: 250, Serial: 3}}
	addEntries(t, s, newEntry(t, "https://a.example/2"))
	must(t, s.Flush(t.Context()))
	want := []OutputFileExtent{{Path: "/data/warc", Name: "a.warc.gz", SyncedSize: 7},
		{Path: "pages.jsonl", SyncedSize: 250, Serial: 3}}
	if got := must1(s.RecordedOutputExtents(t.Context())); !slices.Equal(got, want) {
		t.Errorf("files %+v, want %+v", got, want)
	}
	files = []OutputFileExtent{{Path: "pages.jsonl", SyncedSize: 1000}} // no change follows, so that it is not written
	stopStore(t, s, true)
	got, clean, err := ReadOutputFileRecords(storePath(dir))
	if err != nil || clean || !slices.Equal(got, want) {
		t.Errorf("read %+v, clean: %t (%v), want %+v", got, clean, err, want)
	}
	for range 2 { // these opens report no lengths, so that the output may still be torn
		s = openStore(t, dir, Options{noSync: true})
		if got := must1(s.RecordedOutputExtents(t.Context())); !slices.Equal(got, want) || !s.OutputMayBeTorn() {
			t.Errorf("after a crash %+v, unclean: %t, want %+v", got, s.OutputMayBeTorn(), want)
		}
		if _, _, err := ReadOutputFileRecords(storePath(dir)); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("read while it is open: %v", err)
		}
		must(t, s.Close())
		if _, clean, err := ReadOutputFileRecords(storePath(dir)); err != nil || clean {
			t.Errorf("opened and closed after a crash: clean: %t (%v)", clean, err)
		}
	}
	s = openStore(t, dir, Options{noSync: true, ListOutputFiles: func() []OutputFileExtent { return files }})
	files, want[1].SyncedSize, want[1].Serial = []OutputFileExtent{{Path: "pages.jsonl", SyncedSize: 1000}}, 1000, 0
	addEntries(t, s, newEntry(t, "https://a.example/3"))
	must(t, s.Close())
	if got, clean, err := ReadOutputFileRecords(storePath(dir)); err != nil || !clean || !slices.Equal(got, want) {
		t.Errorf("after Close %+v, clean: %t (%v)", got, clean, err)
	}
	old, _ := unpackFormat3(t)
	if got, clean, err := ReadOutputFileRecords(storePath(old)); err != nil || clean || len(got) != 0 {
		t.Errorf("of format 3: %+v, clean: %t (%v)", got, clean, err)
	}
	if got, _, err := ReadOutputFileRecords(storePath(t.TempDir())); err != nil || len(got) != 0 {
		t.Errorf("of no file: %+v (%v)", got, err)
	}
	empty := filepath.Join(t.TempDir(), "frontier.db")
	must(t, os.WriteFile(empty, nil, 0o600))
	if _, _, err := ReadOutputFileRecords(empty); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("of an empty file: %v", err)
	}
}

// dumpStoreFully returns the contents of a store: those of dumpStore, each URL with its request and
// Sent, the seen set and the notes.
func dumpStoreFully(t *testing.T, s *Store) []string {
	t.Helper()
	all := dumpStore(t, s)
	var origins []decorum.Origin
	must(t, s.Origins(t.Context(), func(i storage.OriginInfo) bool {
		origins = append(origins, i.Origin)
		return true
	}))
	for _, o := range append(origins, decorum.Origin{}) {
		var lines []string
		for _, state := range []storage.EntryState{storage.StateQueued,
			storage.StateAwaitingRevisit, storage.StateParked} {
			must(t, s.OriginURLsInState(t.Context(), o, state, func(e storage.Entry, at time.Time) bool {
				var body int
				if e.Request != nil {
					body = len(e.Request.Body)
				}
				lines = append(lines, fmt.Sprint("entry ", state, e.URL, e.Request.MethodOrGet(), body, e.Sent,
					e.Source, e.Depth, at.Unix()))
				return true
			}))
		}
		must(t, s.SeenURLFingerprints(t.Context(), o, func(p uint64) bool {
			lines = append(lines, fmt.Sprint("seen ", o, p))
			return true
		}))
		must(t, s.OriginNotes(t.Context(), o, func(key string, value []byte) bool {
			lines = append(lines, fmt.Sprintf("note %v %s %x", o, key, value))
			return true
		}))
		slices.Sort(lines)
		all = append(all, lines...)
	}
	return all
}
