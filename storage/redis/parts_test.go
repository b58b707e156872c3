package redis

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// The tests below use the parts of a Store without the Store, on a client.

// openTestClient opens the client of a new store on a new server, whose time is set by
// ScriptClock.AdvanceTo.
func openTestClient(t *testing.T) *client.Client {
	t.Helper()
	return openTestClientOn(t, redistest.StartClusterForTest(t, 1, 0), newPrefix())
}

func openTestClientOn(t *testing.T, cluster *redistest.Cluster, prefix string) *client.Client {
	t.Helper()
	c, err := client.Open(t.Context(), client.Config{
		Addresses: cluster.Addrs(), Prefix: prefix, Partitions: 3, Durability: client.DurabilityNone,
		CacheBytes: 1 << 20, Timeout: 5 * time.Second, OnStallChange: func(error) {}, UsesCallerTime: true,
	})
	must(t, err)
	t.Cleanup(func() { c.Close(func() error { return nil }) })
	return c
}

// Notes are read as they were set, also empty ones. SetNote refuses a note of more than
// storage.MaxNoteBytes.
func TestNoteStore(t *testing.T) {
	t.Parallel()
	n := &noteStore{openTestClient(t)}
	must(t, n.SetNote(t.Context(), shopOrigin, "rules", []byte("allow")))
	must(t, n.SetNote(t.Context(), shopOrigin, "empty", []byte{}))
	must(t, n.SetNote(t.Context(), shopOrigin, "gone", []byte("soon")))
	must(t, n.SetNote(t.Context(), shopOrigin, "gone", nil))
	if v := must1(n.ReadNote(t.Context(), shopOrigin, "gone")); v != nil {
		t.Errorf("the deleted note is %q", v)
	}
	got := map[string]string{}
	must(t, n.OriginNotes(t.Context(), shopOrigin, func(key string, value []byte) bool {
		got[key] = string(value)
		return true
	}))
	if want := map[string]string{"rules": "allow", "empty": ""}; !maps.Equal(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if err := n.SetNote(t.Context(), shopOrigin, "large", make([]byte, storage.MaxNoteBytes+1)); err == nil {
		t.Error("SetNote accepted a note that is too large")
	}
}

// importTestPages imports n pages of shopOrigin in the given state.
func importTestPages(t *testing.T, c *client.Client, n int, state storage.EntryState, due time.Time) {
	t.Helper()
	d := storage.OriginDump{Origin: shopOrigin}
	for i := range n {
		e := storage.StoredEntry{Entry: pageEntry(fmt.Sprintf("https://shop.example/%v/%d", state, i)), State: state}
		if state == storage.StateAwaitingRevisit {
			e.NotBefore = due
			e.VisitHistorySummary = &storage.VisitHistorySummary{VisitedAt: due.Add(-time.Hour), Status: 200}
		}
		d.URLs = append(d.URLs, e)
	}
	must(t, (&importer{c}).Import(t.Context(), []storage.OriginDump{d}))
}

// An inspector reads what an importer has added, in chunks.
func TestImporterAndInspector(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	due := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	n := &inspector{c}
	counts := map[storage.EntryState]int{storage.StateQueued: 2*chunkSize + 1, storage.StateAwaitingRevisit: 2,
		storage.StateParked: chunkSize + 1}
	for state, n := range counts {
		importTestPages(t, c, n, state, due)
	}
	must(t, (&importer{c}).Import(t.Context(),
		[]storage.OriginDump{{Origin: shopOrigin, SeenURLFingerprints: []uint64{1, 1 << 63}}}))
	all := 2
	for state, want := range counts {
		got := map[string]bool{}
		must(t, n.OriginURLsInState(t.Context(), shopOrigin, state, func(e storage.Entry, at time.Time) bool {
			got[e.URL.String()] = true
			if state == storage.StateAwaitingRevisit && !at.Equal(due) {
				t.Errorf("the revisit of %v is due at %v, want %v", e.URL, at, due)
			}
			return true
		}))
		if len(got) != want {
			t.Errorf("%d URLs are in state %v, want %d", len(got), state, want)
		}
		all += want
	}
	seen := map[uint64]bool{}
	must(t, n.SeenURLFingerprints(t.Context(), shopOrigin, func(f uint64) bool { seen[f] = true; return true }))
	if len(seen) != all || !seen[1] || !seen[1<<63] {
		t.Errorf("%d fingerprints were seen, want %d", len(seen), all)
	}
	if u := pageEntry("https://shop.example/never").URL; must1(n.HasSeen(t.Context(), u)) {
		t.Errorf("%v was seen", u)
	}
	i, ok, err := n.Origin(t.Context(), shopOrigin)
	if err != nil || !ok || i.QueuedURLs != counts[storage.StateQueued] ||
		i.ParkedURLs != counts[storage.StateParked] || i.SeenURLs != all {
		t.Errorf("%+v, %t, %v", i, ok, err)
	}
	var names []decorum.Origin
	must(t, n.OriginNames(t.Context(), func(o decorum.Origin) bool { names = append(names, o); return true }))
	must(t, n.Origins(t.Context(), func(i storage.OriginInfo) bool { names = append(names, i.Origin); return true }))
	if want := []decorum.Origin{shopOrigin, shopOrigin}; !slices.Equal(names, want) {
		t.Errorf("origins %v, want %v", names, want)
	}
}

// UnparkMatchingURLs queues each matching URL once; the others stay parked.
func TestParkingUnpark(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	k := &parking{client: c}
	importTestPages(t, c, chunkSize+44, storage.StateParked, time.Time{})
	if o := must1(k.parkedOrigins(t.Context())); !slices.Equal(o, []decorum.Origin{shopOrigin}) {
		t.Errorf("origins with parked URLs are %v", o)
	}
	unparked := must1(k.UnparkMatchingURLs(t.Context(), shopOrigin, func(e storage.Entry) bool {
		return strings.HasSuffix(e.URL.String(), "0")
	}))
	left := 0
	must(t, (&inspector{c}).forEachParked(t.Context(), shopOrigin, func(storage.Entry, time.Time) bool {
		left++
		return true
	}))
	if unparked != 30 || left != 270 {
		t.Errorf("%d URLs were queued and %d are parked, want 30 and 270", unparked, left)
	}
	must1(k.UnparkMatchingURLs(t.Context(), shopOrigin, func(storage.Entry) bool { return true }))
	if o := must1(k.parkedOrigins(t.Context())); len(o) > 0 {
		t.Errorf("origins with parked URLs are %v, want none", o)
	}
}

// A page that was modified since its last visit becomes due now; one that was not keeps its due time.
func TestParkingReschedule(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	due := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now := due.Add(-30 * time.Minute)
	importTestPages(t, c, 2, storage.StateAwaitingRevisit, due)
	var pages []decorum.URL
	dueAt := map[decorum.URL]time.Time{}
	n := &inspector{c}
	read := func() {
		must(t, n.OriginURLsInState(t.Context(), shopOrigin, storage.StateAwaitingRevisit,
			func(e storage.Entry, at time.Time) bool {
				dueAt[e.URL] = at
				return true
			}))
	}
	read()
	pages = slices.SortedFunc(maps.Keys(dueAt), func(a, b decorum.URL) int {
		return strings.Compare(a.String(), b.String())
	})
	r := &parking{client: c}
	lastmods := []storage.SitemapLastmod{{URL: pages[0], Modified: now},
		{URL: pages[1], Modified: due.Add(-2 * time.Hour)},
		{URL: pageEntry("https://shop.example/other").URL, Modified: now}}
	if k := must1(r.RescheduleByLastmod(t.Context(), now, lastmods)); k != 1 {
		t.Errorf("%d pages were rescheduled, want 1", k)
	}
	read()
	if !dueAt[pages[0]].Equal(now) || !dueAt[pages[1]].Equal(due) {
		t.Errorf("the pages are due at %v and %v, want %v and %v", dueAt[pages[0]], dueAt[pages[1]], now, due)
	}
}

// newTestURLLeaser returns a urlLeaser and the leaseManager of its leases.
func newTestURLLeaser(c *client.Client) (*urlLeaser, *leaseManager) {
	held, ttls := newHeldLeases(), newLeaseTTLRecorder(c, time.Second)
	return &urlLeaser{client: c, summaries: &summaryRefresher{client: c}, held: held, ttls: ttls,
			onDamaged: func(error) {}},
		&leaseManager{client: c, held: held, ttls: ttls, beforeAck: func() error { return nil }}
}

// importTestHosts imports a POST request for each of n hosts. The first host is due at first, and each
// other one a second after the one before.
func importTestHosts(t *testing.T, c *client.Client, n int, first time.Time) {
	t.Helper()
	var dumps []storage.OriginDump
	for i := range n {
		page := pageEntry(fmt.Sprintf("https://h%d.example/", i))
		page.Request = &storage.NonGETRequest{Method: "POST"}
		dumps = append(dumps, storage.OriginDump{Origin: page.URL.Origin(), URLs: []storage.StoredEntry{{Entry: page}},
			HostState: &storage.HostState{Due: first.Add(time.Duration(i) * time.Second)}})
	}
	must(t, (&importer{c}).Import(t.Context(), dumps))
}

// A urlLeaser leases the URLs of the hosts first that have been due for longest, whatever their
// partitions, and returns when the next host is due. It drops a record that cannot be decoded.
func TestURLLeaser(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const hosts, due = 20, 10
	importTestHosts(t, c, hosts, begin)
	l, _ := newTestURLLeaser(c)
	var damaged []error
	l.onDamaged = func(err error) { damaged = append(damaged, err) }
	now := begin.Add((due - 1) * time.Second)
	var got []string
	for _, n := range []int{4, 3, 100} {
		leases, next, err := l.Lease(t.Context(), now, time.Minute, n)
		must(t, err)
		for _, one := range leases {
			got = append(got, one.URL.Origin().Host())
			if !one.Expires.Equal(now.Add(time.Minute)) {
				t.Errorf("the lease of %v expires at %v, want a minute after %v", one.URL, one.Expires, now)
			}
		}
		if len(got) == due && !next.Until.Equal(now.Add(time.Second)) {
			t.Errorf("the next host is due at %v, want %v", next.Until, now.Add(time.Second))
		}
	}
	for i, host := range got {
		if want := fmt.Sprintf("h%d.example", i); host != want {
			t.Errorf("lease %d is of %s, want %s", i, host, want)
		}
	}
	if len(got) != due {
		t.Errorf("%d leases, want %d", len(got), due)
	}

	args := []string{"0", "https://odd.example", "odd.example", "3", "0", "1", "no record"}
	_, _, err := c.RunUpdate(t.Context(), c.PartitionOfHost("odd.example"), false, lua.Add, args...)
	must(t, err)
	if leases, _, err := l.Lease(t.Context(), now, time.Minute, 1); err != nil || len(leases) > 0 || len(damaged) != 1 {
		t.Errorf("leases %v, error %v, damaged records %v; want one damaged record", leases, err, damaged)
	}
	if sum, _ := c.Partitions().Total(); sum.LeasedURLs != due || sum.QueuedURLs != hosts-due {
		t.Errorf("%d URLs are leased and %d queued, want %d and %d", sum.LeasedURLs, sum.QueuedURLs, due, hosts-due)
	}
}

// A leaseManager renews, marks and acks leases, and returns the ones that are left.
func TestLeaseManager(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	importTestHosts(t, c, 3, begin.Add(-time.Hour))
	l, h := newTestURLLeaser(c)
	leases, _, err := l.Lease(t.Context(), begin, time.Minute, 3)
	if err != nil || len(leases) != 3 {
		t.Fatal(leases, err)
	}
	must(t, h.Renew(t.Context(), leases[0], begin, time.Hour))
	must(t, h.MarkSent(t.Context(), leases[1], true))
	acks := []storage.Ack{{Lease: leases[0]}}
	h.beforeAck = func() error { return errors.New("the disk is full") }
	if err := h.Ack(t.Context(), acks); err == nil {
		t.Error("Ack succeeds although BeforeAck has failed")
	}
	h.beforeAck = func() error { return nil }
	must(t, h.Ack(t.Context(), acks))
	if err := h.Ack(t.Context(), acks); !errors.Is(err, storage.ErrStaleLease) {
		t.Errorf("the second ack returns %v, want %v", err, storage.ErrStaleLease)
	}
	if err := h.MarkSent(t.Context(), leases[0], true); !errors.Is(err, storage.ErrStaleLease) {
		t.Errorf("a mark of a lease that has ended returns %v, want %v", err, storage.ErrStaleLease)
	}
	must(t, h.returnAll(t.Context()))
	again, _, err := l.Lease(t.Context(), begin.Add(time.Second), time.Minute, 3)
	must(t, err)
	sent := map[string]bool{}
	for _, one := range again {
		sent[one.URL.String()] = one.Sent
	}
	if want := map[string]bool{leases[1].URL.String(): true, leases[2].URL.String(): false}; !maps.Equal(sent, want) {
		t.Errorf("URLs leased again, and whether they are marked as sent: %v, want %v", sent, want)
	}
}

// A summaryRefresher sees changes of other processes after its interval, or at once with refreshAll.
func TestSummaryRefresher(t *testing.T) {
	t.Parallel()
	cluster, prefix := redistest.StartClusterForTest(t, 1, 0), newPrefix()
	c, other := openTestClientOn(t, cluster, prefix), openTestClientOn(t, cluster, prefix)
	queued := func(want int) {
		t.Helper()
		if sum, complete := c.Partitions().Total(); !complete || sum.QueuedURLs != want {
			t.Errorf("%d URLs are known to be queued, want %d", sum.QueuedURLs, want)
		}
	}
	r := &summaryRefresher{client: c, interval: time.Hour}
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	importTestHosts(t, other, 2, begin)
	must(t, r.refreshChanged(t.Context())) // the first call refreshes all partitions
	queued(2)
	importTestHosts(t, other, 4, begin)
	must(t, r.refreshChanged(t.Context()))
	queued(2)
	r.lastCheck = r.lastCheck.Add(-time.Hour)
	must(t, r.refreshChanged(t.Context()))
	queued(4)
	importTestHosts(t, other, 5, begin)
	must(t, r.refreshAll(t.Context()))
	queued(5)
}
