package bolt

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// TestDamagedRecords: the store quarantines and reports a damaged record, and leases the next URL. It
// reports and corrects the count of a queue that is shorter than its count.
func TestDamagedRecords(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir) // 1000 URLs each of a.example and b.example, with even and odd numbers
	editFile(t, storePath(dir), func(tx *bbolt.Tx) error {
		urls := tx.Bucket([]byte(bucketURLs))
		first, _ := urls.Cursor().First()
		if err := urls.Put(first, []byte("makes no sense")); err != nil {
			return err
		}
		last, _ := urls.Cursor().Last() // of b.example
		return urls.Delete(last)
	})
	var reported []string
	s := openStore(t, dir, Options{noSync: true, OnDamaged: func(err error) {
		reported = append(reported, err.Error())
	}})
	leased := 0
	for now := time.Now().Add(time.Hour); ; now = now.Add(time.Second) {
		leases := mustLease(t, s, now, 2)
		if len(leases) == 0 {
			break
		}
		for _, l := range leases {
			leased++
			must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l}}))
		}
	}
	if c := must1(s.Counts(t.Context())); leased != 1998 || c.QueuedURLs != 0 {
		t.Errorf("%d were leased, want 1998; counts %+v", leased, c)
	}
	want := []string{"a damaged URL record is skipped: ", "queue of https://b.example: "}
	if len(reported) != 2 || !strings.Contains(reported[0], want[0]) || !strings.Contains(reported[1], want[1]) {
		t.Errorf("OnDamaged was called with %q, want %q", reported, want)
	}
	checkpointAll(s)
	must(t, s.engine.file.db.View(func(tx *bbolt.Tx) error {
		key, value := tx.Bucket([]byte(bucketURLs)).Cursor().First()
		if _, at, ok := parseURLKey(key); !ok || at.lane != damagedLane ||
			string(must1(verifyAndTrimChecksum(key, value))) != "makes no sense" {
			t.Errorf("%x: %q is in the file, want the quarantined record", key, value)
		}
		return nil
	}))
	must(t, s.Close())
}

// TestEvictsEmptyOrigins: origins without URLs leave memory, and are read back when they are needed.
func TestEvictsEmptyOrigins(t *testing.T) {
	const n = 3 * maxRecentOrigins
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, MaxBufferedChanges: 1 << 30, noSync: true})
	defer s.Close()
	now := time.Now()
	due := now.Add(time.Hour)
	for i := range n {
		addEntries(t, s, newEntry(t, "https://h%d.example/", i))
		l := mustLease(t, s, now, 1)[0]
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: l,
			HostState: &storage.HostState{Due: due, LostVisitDelay: time.Second}}}))
	}
	addEntries(t, s, newEntry(t, "https://h0.example/more"))
	checkpointAll(s)
	check := func() {
		t.Helper()
		if len(s.engine.index.origins) > maxRecentOrigins+1 || len(s.engine.index.hosts) > maxRecentOrigins+1 ||
			len(s.engine.index.originsByNumber) != len(s.engine.index.origins) ||
			len(s.engine.index.recentOrigins) > maxRecentOrigins {
			t.Errorf("%d origins, %d hosts, %d numbers and %d recent origins are in memory",
				len(s.engine.index.origins), len(s.engine.index.hosts), len(s.engine.index.originsByNumber),
				len(s.engine.index.recentOrigins))
		}
	}
	check()
	for i := range n {
		if must1(s.Add(t.Context(), []storage.Entry{newEntry(t, "https://h%d.example/", i)},
			0))[0] != storage.Duplicate {
			t.Fatalf("the seen set has lost h%d.example", i)
		}
	}
	check()
	if c := must1(s.Counts(t.Context())); c.SeenURLs != n+1 || c.QueuedURLs != 1 {
		t.Errorf("counts %+v", c)
	}
	addEntries(t, s, newEntry(t, "https://h1.example/more"))
	if leases := mustLease(t, s, now, 10); len(leases) > 0 {
		t.Errorf("leased %v before it was due", leases[0].URL)
	}
	if leases := mustLease(t, s, due, 10); len(leases) != 2 || leases[1].HostState.LostVisitDelay != time.Second {
		t.Errorf("leased %v, want two", leases)
	}
}

func TestInspector(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, noSync: true})
	defer s.Close()
	now := time.Now().Truncate(time.Second)
	const n = 3 * batchSize
	for i := range n {
		addEntries(t, s, newEntry(t, "https://a.example/%d", i), newEntry(t, "https://h%d.example/", i))
	}
	a := newEntry(t, "https://a.example/").URL.Origin()
	outcomes := []storage.Ack{{Outcome: storage.RetryAt}, {Outcome: storage.RevisitAt}, {Outcome: storage.Park},
		{Outcome: storage.Requeue}}
	for i := 0; i < len(outcomes); {
		for _, l := range mustLease(t, s, now, 1) {
			if l.URL.Origin() == a {
				ack := outcomes[i]
				ack.Lease, ack.NotBefore, ack.HostState = l, now.Add(time.Hour), &storage.HostState{Due: now, Slots: 5}
				must(t, s.Ack(t.Context(), []storage.Ack{ack}))
				i++
			}
		}
		now = now.Add(time.Second)
	}
	inspect := func() {
		t.Helper()
		seen := make(map[string]bool)
		must(t, s.Origins(t.Context(), func(i storage.OriginInfo) bool { seen[i.Origin.String()] = true; return true }))
		if len(seen) != n+1 {
			t.Errorf("%d origins, want %d", len(seen), n+1)
		}
		calls := 0
		must(t, s.Origins(t.Context(), func(storage.OriginInfo) bool { calls++; return false }))
		if calls != 1 {
			t.Errorf("%d calls of yield after it returned false", calls-1)
		}
		urls := func(state storage.EntryState) (paths []string, timed int) {
			must(t, s.OriginURLsInState(t.Context(), a, state, func(e storage.Entry, at time.Time) bool {
				paths = append(paths, e.URL.PathAndQuery())
				if !at.IsZero() {
					timed++
				}
				return true
			}))
			return paths, timed
		}
		queued, timed := urls(storage.StateQueued)
		if len(queued) != n-2 || queued[0] != "/3" || queued[1] != "/0" || queued[2] != "/4" || timed != 1 {
			t.Errorf("%d queued, %q first, %d timed", len(queued), queued[:3], timed)
		}
		if revisits, timed := urls(storage.StateAwaitingRevisit); fmt.Sprint(revisits) != "[/1]" || timed != 1 {
			t.Errorf("%q await a revisit", revisits)
		}
		if parked, timed := urls(storage.StateParked); fmt.Sprint(parked) != "[/2]" || timed != 0 {
			t.Errorf("%q are parked", parked)
		}
		i, found, err := s.Origin(t.Context(), a)
		if !found || err != nil || i.QueuedURLs != n-2 || i.AwaitingRevisit != 1 || i.ParkedURLs != 1 ||
			i.SeenURLs != n || i.HostState.Slots != 5 || i.NextDue.After(now) {
			t.Errorf("origin %+v, %t, %v", i, found, err)
		}
	}
	inspect()
	checkpointAll(s)
	inspect()
	if _, found, err := s.Origin(t.Context(), newEntry(t, "https://never.example/").URL.Origin()); found || err != nil {
		t.Errorf("the store has an origin that it was never given (%v)", err)
	}
}

// TestUnparkInBatches: UnparkMatchingURLs offers every parked URL once, also with more than two batches.
func TestUnparkInBatches(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{FlushEvery: time.Hour, MaxBufferedChanges: 1 << 30, noSync: true})
	defer s.Close()
	now := time.Now()
	const n = 2*batchSize + 10
	for i := range n {
		addEntries(t, s, newEntry(t, "https://a.example/%d", i))
	}
	for range n {
		now = now.Add(time.Second)
		must(t, s.Ack(t.Context(), []storage.Ack{{Lease: mustLease(t, s, now, 1)[0], Outcome: storage.Park}}))
	}
	offered := 0
	unparked, err := s.UnparkMatchingURLs(t.Context(), newEntry(t, "https://a.example/").URL.Origin(),
		func(e storage.Entry) bool {
			offered++
			return offered%2 == 0
		})
	c := must1(s.Counts(t.Context()))
	if err != nil || offered != n || unparked != n/2 || c.ParkedURLs != n/2 || c.QueuedURLs != n/2 {
		t.Errorf("%d offered, %d unparked (%v), counts %+v", offered, unparked, err, c)
	}
	if unparked := must1(s.UnparkMatchingURLs(t.Context(), decorum.Origin{}, func(storage.Entry) bool {
		return true
	})); unparked != n/2 {
		t.Errorf("%d unparked of all origins, want %d", unparked, n/2)
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	file := storePath(dir)
	fillStore(t, dir)
	if err := Compact(file + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	s := openStore(t, dir, Options{noSync: true})
	stats := must1(s.FileStats())
	if err := Compact(file); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("compact a store in use: %v", err)
	}
	want := dumpStore(t, s)
	must(t, s.Close())
	must(t, os.WriteFile(file+".compact", []byte("of an attempt before"), 0o600))
	must(t, Compact(file))
	s = openStore(t, dir, Options{noSync: true})
	defer s.Close()
	after := must1(s.FileStats())
	if after.Size > stats.Size-stats.FreeBytes/2 || stats.FreeBytes < stats.Size/2 || after.FreeBytes > after.Size/2 {
		t.Errorf("%+v became %+v", stats, after)
	}
	if got := dumpStore(t, s); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Error("the contents differ after Compact")
	}
	if entries := must1(os.ReadDir(dir)); len(entries) != 1 {
		t.Errorf("%v are left", entries)
	}
	foreign := storePath(t.TempDir())
	editFile(t, foreign, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err })
	if err := Compact(foreign); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("compact another program's file: %v", err)
	}
}

// TestCompactBehindALink: Compact replaces the file that a symbolic link leads to, keeps the link, and
// keeps the permissions of the file.
func TestCompactBehindALink(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	fillStore(t, disk)
	must(t, os.Chmod(storePath(disk), 0o640))
	before := must1(os.Stat(storePath(disk))).Size()
	must(t, os.Symlink(storePath(disk), storePath(dir)))
	must(t, Compact(storePath(dir)))
	if at := must1(os.Lstat(storePath(dir))); at.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link became %v", at.Mode())
	}
	after := must1(os.Stat(storePath(disk)))
	if after.Size() >= before || after.Mode().Perm() != 0o640 {
		t.Errorf("%d bytes became %d, with mode %v", before, after.Size(), after.Mode())
	}
}

// TestReadHostNames checks that hosts are read from the log and from the checkpoints of a store that is not
// open, and that the file stays as it is.
func TestReadHostNames(t *testing.T) {
	dir := t.TempDir()
	fillStore(t, dir) // a.example and b.example
	before, err := os.ReadFile(storePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		prefix string
		limit  int
		want   string
	}{{"", 9, "[a.example b.example]"}, {"b", 9, "[b.example]"}, {"", 1, "[a.example]"}, {"c", 9, "[]"}} {
		got, err := ReadHostNames(storePath(dir), tt.prefix, tt.limit)
		if err != nil || fmt.Sprint(got) != tt.want {
			t.Errorf("hosts with %q, at most %d: %v, %v; want %s", tt.prefix, tt.limit, got, err, tt.want)
		}
	}
	if after, err := os.ReadFile(storePath(dir)); err != nil || string(after) != string(before) {
		t.Errorf("ReadHostNames has changed the file: %v", err)
	}
	openStore(t, dir, Options{noSync: true})
	if _, err := ReadHostNames(storePath(dir), "", 9); err == nil {
		t.Error("ReadHostNames has read a store that is open")
	}
}
