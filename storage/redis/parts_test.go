package redis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// Each part of a Store works without one, on a client.

// openTestClient opens the client of a store of its own on a server of its own, whose
// time is what the client's clock is told.
func openTestClient(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.Open(t.Context(), client.Config{
		Addresses: redistest.StartClusterForTest(t, 1, 0).Addrs(), Prefix: newPrefix(), Partitions: 3, Durability: client.DurabilityNone,
		CacheBytes: 1 << 20, Timeout: 5 * time.Second, OnStallChange: func(error) {}, UsesCallerTime: true,
	})
	must(t, err)
	t.Cleanup(func() { c.Close(func() error { return nil }) })
	return c
}

// Notes are read as they were set, an empty one too, and are no larger than a note may be.
func TestNoteStore(t *testing.T) {
	t.Parallel()
	n := &noteStore{openTestClient(t)}
	must(t, n.set(t.Context(), shopOrigin, "rules", []byte("allow")))
	must(t, n.set(t.Context(), shopOrigin, "empty", []byte{}))
	must(t, n.set(t.Context(), shopOrigin, "gone", []byte("soon")))
	must(t, n.set(t.Context(), shopOrigin, "gone", nil))
	if v := must1(n.read(t.Context(), shopOrigin, "gone")); v != nil {
		t.Errorf("a note that was deleted is %q", v)
	}
	got := map[string]string{}
	must(t, n.all(t.Context(), shopOrigin, func(key string, value []byte) bool {
		got[key] = string(value)
		return true
	}))
	if want := map[string]string{"rules": "allow", "empty": ""}; !maps.Equal(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if err := n.set(t.Context(), shopOrigin, "large", make([]byte, storage.MaxNoteBytes+1)); err == nil {
		t.Error("a note was set that is larger than a note may be")
	}
}

// Hosts are counted once each, within the limits of the crawl and of their domain.
func TestHostCounter(t *testing.T) {
	t.Parallel()
	h := &hostCounter{openTestClient(t)}
	var hosts []storage.HostToAdmit
	for _, name := range []string{"a.x.example", "b.x.example", "c.x.example", "a.x.example", "y.example", "z.example"} {
		domain := name[max(0, len(name)-len("x.example")):]
		hosts = append(hosts, storage.HostToAdmit{Host: name, Domain: domain})
	}
	got := must1(h.admit(t.Context(), hosts, storage.HostAdmissionLimits{MaxHosts: 3, MaxHostsPerDomain: 2}))
	want := []storage.HostAdmissionResult{storage.HostAdmitted, storage.HostAdmitted, storage.DomainLimitReached,
		storage.HostAlreadyCounted, storage.HostAdmitted, storage.HostLimitReached}
	if !slices.Equal(got, want) {
		t.Errorf("hosts are admitted as %v, want %v", got, want)
	}
	for i, want := range map[int]storage.HostAdmissionCounts{
		0: {Hosts: 3, DomainHosts: 2, IncludesHost: true}, 2: {Hosts: 3, DomainHosts: 2}, 5: {Hosts: 3},
	} {
		if got := must1(h.counts(t.Context(), hosts[i])); got != want {
			t.Errorf("%v: %+v, want %+v", hosts[i], got, want)
		}
	}
}

// importTestPages imports n pages of shopOrigin that are in a state.
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
	must(t, (&importer{c}).add(t.Context(), []storage.OriginDump{d}))
}

// What an importer has added an inspector reads, in portions.
func TestImporterAndInspector(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	due := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	n := &inspector{c, &parkedURLs{client: c}}
	counts := map[storage.EntryState]int{storage.StateQueued: 2*chunkSize + 1, storage.StateAwaitingRevisit: 2, storage.StateParked: chunkSize + 1}
	for state, n := range counts {
		importTestPages(t, c, n, state, due)
	}
	must(t, (&importer{c}).add(t.Context(), []storage.OriginDump{{Origin: shopOrigin, SeenURLFingerprints: []uint64{1, 1 << 63}}}))
	all := 2
	for state, want := range counts {
		got := map[string]bool{}
		must(t, n.originURLs(t.Context(), shopOrigin, state, func(e storage.Entry, at time.Time) bool {
			got[e.URL.String()] = true
			if state == storage.StateAwaitingRevisit && !at.Equal(due) {
				t.Errorf("%v is to be visited again at %v, want %v", e.URL, at, due)
			}
			return true
		}))
		if len(got) != want {
			t.Errorf("%d URLs are in state %v, want %d", len(got), state, want)
		}
		all += want
	}
	seen := map[uint64]bool{}
	must(t, n.seenFingerprints(t.Context(), shopOrigin, func(f uint64) bool { seen[f] = true; return true }))
	if len(seen) != all || !seen[1] || !seen[1<<63] {
		t.Errorf("%d fingerprints were seen, want %d", len(seen), all)
	}
	if u := pageEntry("https://shop.example/never").URL; must1(n.hasSeen(t.Context(), u)) {
		t.Errorf("%v was seen", u)
	}
	i, ok, err := n.origin(t.Context(), shopOrigin)
	if err != nil || !ok || i.QueuedURLs != counts[storage.StateQueued] || i.ParkedURLs != counts[storage.StateParked] || i.SeenURLs != all {
		t.Errorf("%+v, %t, %v", i, ok, err)
	}
	var names []decorum.Origin
	must(t, n.originNames(t.Context(), func(o decorum.Origin) bool { names = append(names, o); return true }))
	must(t, n.origins(t.Context(), func(i storage.OriginInfo) bool { names = append(names, i.Origin); return true }))
	if want := []decorum.Origin{shopOrigin, shopOrigin}; !slices.Equal(names, want) {
		t.Errorf("origins %v, want %v", names, want)
	}
}

// Parked URLs that match are queued, each once, whatever was parked meanwhile; the others
// stay parked.
func TestParkedURLs(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	k := &parkedURLs{client: c}
	importTestPages(t, c, chunkSize+44, storage.StateParked, time.Time{})
	if o := must1(k.origins(t.Context())); !slices.Equal(o, []decorum.Origin{shopOrigin}) {
		t.Errorf("origins with parked URLs are %v", o)
	}
	unparked := must1(k.unpark(t.Context(), shopOrigin, func(e storage.Entry) bool { return strings.HasSuffix(e.URL.String(), "0") }))
	left := 0
	must(t, k.forEach(t.Context(), shopOrigin, func(storage.Entry, time.Time) bool { left++; return true }))
	if unparked != 30 || left != 270 {
		t.Errorf("%d were queued and %d are parked, want 30 and 270", unparked, left)
	}
	must1(k.unpark(t.Context(), shopOrigin, func(storage.Entry) bool { return true }))
	if o := must1(k.origins(t.Context())); len(o) > 0 {
		t.Errorf("origins with parked URLs are %v, when none is parked", o)
	}
}

// A page that was modified since its last visit is visited earlier; one that was not stays.
func TestRevisitScheduler(t *testing.T) {
	t.Parallel()
	c := openTestClient(t)
	due := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	now := due.Add(-30 * time.Minute)
	importTestPages(t, c, 2, storage.StateAwaitingRevisit, due)
	var pages []decorum.URL
	dueAt := map[decorum.URL]time.Time{}
	n := &inspector{c, &parkedURLs{client: c}}
	read := func() {
		must(t, n.originURLs(t.Context(), shopOrigin, storage.StateAwaitingRevisit, func(e storage.Entry, at time.Time) bool {
			dueAt[e.URL] = at
			return true
		}))
	}
	read()
	pages = slices.SortedFunc(maps.Keys(dueAt), func(a, b decorum.URL) int { return strings.Compare(a.String(), b.String()) })
	r := &revisitScheduler{client: c}
	lastmods := []storage.SitemapLastmod{{URL: pages[0], Modified: now}, {URL: pages[1], Modified: due.Add(-2 * time.Hour)},
		{URL: pageEntry("https://shop.example/other").URL, Modified: now}}
	if k := must1(r.reschedule(t.Context(), now, lastmods)); k != 1 {
		t.Errorf("%d pages were rescheduled, want 1", k)
	}
	read()
	if !dueAt[pages[0]].Equal(now) || !dueAt[pages[1]].Equal(due) {
		t.Errorf("the pages are due at %v and %v, want %v and %v", dueAt[pages[0]], dueAt[pages[1]], now, due)
	}
}
