package storagetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/storage"
)

// RunDurable tests that a Store has the same contents after Close and another open of its directory. open
// opens the Store in dir, which is empty at first.
func RunDurable(t *testing.T, open func(t testing.TB, dir string) storage.Store) {
	for _, tt := range durableTests {
		t.Run("reopen finds "+tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := &durableFixture{newFixture(t, open(t, dir)), func() storage.Store { return open(t, dir) }}
			tt.run(d)
		})
	}
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		var dir string
		testRandomCalls(t, func() storage.Store {
			dir = t.TempDir()
			return open(t, dir)
		}, func(s storage.Store) storage.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return newFixture(t, open(t, dir)).store
		})
	})
}

// A durableFixture is a fixture whose Store can be closed and opened again.
type durableFixture struct {
	*fixture
	openStore func() storage.Store
}

func (d *durableFixture) reopen() {
	d.Helper()
	d.must(d.store.Close())
	d.fixture = newFixture(d.TB, d.openStore())
}

var durableTests = []struct {
	name string
	run  func(*durableFixture)
}{
	{"queues in their order", func(d *durableFixture) {
		var urls []string
		for i := range 300 {
			urls = append(urls, "https://a.example/"+strconv.Itoa(i))
		}
		d.mustAddExactly(150, linkEntries(urls[:150]...)...)
		d.reopen()
		d.mustAddExactly(150, linkEntries(urls[150:]...)...)
		d.mustAddExactly(1, entryOfClass(storage.ClassEarly, "https://a.example/early"))
		d.reopen()
		d.wantOrder(at(0), append([]string{"https://a.example/early"}, urls...)...)
	}},
	{"the seen set", func(d *durableFixture) {
		d.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://b.example/1")...)
		for _, l := range d.mustLeaseUpTo(at(0), 2) {
			d.mustAck(storage.Ack{Lease: l})
		}
		d.reopen()
		d.mustAddExactly(1, linkEntries("https://a.example/1", "https://a.example/2",
			"https://b.example/1", "https://a.example/3")...)
		if c := d.mustGetCounts(); c.SeenURLs != 4 {
			d.Errorf("%d seen, want 4", c.SeenURLs)
		}
	}},
	{"hosts", func(d *durableFixture) {
		d.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		want := storage.HostState{Due: at(100.000000001), LostVisitDelay: 1500 * time.Millisecond, Slots: 3,
			ConsecutiveFailures: 4, EncodedStats: []byte("\x00memo")}
		d.mustAck(storage.Ack{Lease: d.mustLeaseURL(at(0), "https://a.example/1"), HostState: &want})
		d.reopen()
		d.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: want.Due})
		if got := d.mustLeaseURL(want.Due, "https://a.example/2").HostState; !equalHostStates(got, want) {
			d.Errorf("host %+v, want %+v", got, want)
		}
	}},
	{"admitted hosts", func(d *durableFixture) {
		l := storage.HostCountLimits{MaxHostsPerDomain: 2, MaxHosts: 3}
		d.wantHostAdmission(l, "a.example", []string{"1.a.example", "2.a.example"},
			storage.HostAdmitted, storage.HostAdmitted)
		d.reopen()
		d.wantHostAdmission(l, "a.example", []string{"3.a.example", "1.a.example"}, storage.DomainLimitReached,
			storage.HostAlreadyCounted)
		d.wantHostAdmission(l, "b.example", []string{"b.example"}, storage.HostAdmitted)
		d.reopen()
		d.wantHostAdmission(l, "c.example", []string{"c.example"}, storage.HostLimitReached)
		d.wantAdmittedHostTotals("2.a.example", "a.example",
			storage.AdmittedHostTotals{Hosts: 3, DomainHosts: 2, IncludesHost: true})
	}},
	{"a host without URLs", func(d *durableFixture) {
		d.mustAddExactly(1, linkEntry("https://a.example/1"))
		d.ackVisit(d.mustLeaseURL(at(0), "https://a.example/1"), at(100))
		d.reopen()
		d.mustAddExactly(1, linkEntry("https://a.example/2"))
		d.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
	}},
	{"leased URLs in their queues again", func(d *durableFixture) {
		d.mustAddExactly(4, linkEntries("https://a.example/1", "https://a.example/2",
			"https://b.example/1", "https://b.example/2")...)
		d.mustLeaseUpTo(at(0), 2)
		d.reopen()
		if c := d.mustGetCounts(); c.LeasedURLs != 0 || c.QueuedURLs != 4 {
			d.Fatalf("counts %+v, want 4 queued", c)
		}
		for _, l := range d.mustLeaseUpTo(at(0), 2) {
			if l.URL.PathAndQuery() != "/1" {
				d.Errorf("leased %v, want the one that was leased before", l.URL)
			}
		}
	}},
	{"requeued URLs at the head of their queue", func(d *durableFixture) {
		d.mustAddExactly(2, entryOfClass(storage.ClassLate, "https://a.example/late"),
			entryOfClass(storage.ClassLate, "https://a.example/late2"))
		l := d.mustLeaseURL(at(0), "https://a.example/late")
		d.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/first"))
		d.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		d.reopen()
		d.wantOrder(at(0), "https://a.example/late", "https://a.example/first", "https://a.example/late2")
	}},
	{"delayed URLs", func(d *durableFixture) {
		d.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		for i, when := range []float64{30, 10, 20} {
			l := d.mustLeaseURL(at(0), "https://a.example/"+strconv.Itoa(i+1))
			l.FailedAttempts++
			d.mustAck(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(when)})
		}
		d.reopen()
		d.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(10)})
		if l := d.mustLeaseURL(at(10), "https://a.example/2"); l.FailedAttempts != 1 {
			d.Errorf("%d failed attempts, want 1", l.FailedAttempts)
		}
		d.reopen()
		d.wantOrder(at(30), "https://a.example/2", "https://a.example/3", "https://a.example/1")
	}},
	{"parked URLs", func(d *durableFixture) {
		d.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		for _, u := range []string{"https://a.example/1", "https://a.example/2"} {
			d.mustAck(storage.Ack{Lease: d.mustLeaseURL(at(0), u), Outcome: storage.Park})
		}
		d.reopen()
		if c := d.mustGetCounts(); c.ParkedURLs != 2 || c.SeenURLs != 2 {
			d.Fatalf("counts %+v, want 2 parked and seen", c)
		}
		_, err := d.store.UnparkMatchingURLs(d.Context(), mustOrigin("https://a.example"), func(e storage.Entry) bool {
			return e.URL.PathAndQuery() == "/2"
		})
		d.must(err)
		d.reopen()
		d.wantOrder(at(0), "https://a.example/2")
	}},
	{"ranks", func(d *durableFixture) {
		d.mustAddExactly(2, entryWithRank(300, "https://a.example/300"), entryWithRank(20, "https://a.example/20"))
		d.reopen()
		d.mustAddExactly(1, entryWithRank(100, "https://a.example/100"))
		d.reopen()
		d.wantOrder(at(0), "https://a.example/20", "https://a.example/100", "https://a.example/300")
	}},
	{"pages that await their revisit, with their VisitHistorySummary", func(d *durableFixture) {
		d.addAwaitingRevisit("https://a.example/1", at(30))
		d.addAwaitingRevisit("https://a.example/2", at(20))
		d.reopen()
		if c := d.mustGetCounts(); c.AwaitingRevisit != 2 || c.SeenURLs != 2 || c.QueuedURLs != 0 {
			d.Fatalf("counts %+v, want two that await a revisit and are seen", c)
		}
		d.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(20)})
		l := d.mustLeaseURL(at(20), "https://a.example/2")
		if diff := cmp.Diff(newVisitHistorySummary(at(0)), l.VisitHistorySummary); diff != "" {
			d.Errorf("history (-acked +leased):\n%s", diff)
		}
		d.mustAck(storage.Ack{Lease: l})
		d.wantOrder(at(30), "https://a.example/1")
	}},
	{"pages that were rescheduled", func(d *durableFixture) {
		d.addAwaitingRevisit("https://a.example/1", at(100))
		d.addAwaitingRevisit("https://a.example/2", at(100))
		d.reopen()
		d.rescheduleAndWantCount(1, at(20), "https://a.example/2", at(10)) // of a page from before the restart
		d.reopen()
		d.wantWait(at(19), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(20)})
		l := d.mustLeaseURL(at(20), "https://a.example/2")
		if !l.VisitHistorySummary.SitemapLastmod.Equal(at(10)) {
			d.Errorf("sitemap lastmod %v, want %v", l.VisitHistorySummary.SitemapLastmod, at(10))
		}
		d.mustAck(storage.Ack{Lease: l})
		d.wantWait(at(20), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(100)})
	}},
	{"a leased revisit at its time", func(d *durableFixture) {
		d.addAwaitingRevisit("https://a.example/1", at(10))
		d.mustLeaseURL(at(10), "https://a.example/1")
		d.reopen()
		d.mustLeaseURL(at(10), "https://a.example/1")
	}},
	{"holds", func(d *durableFixture) {
		d.mustAddExactly(2, linkEntries("https://a.example/", "https://b.example/")...)
		d.mustHoldOrigin("https://a.example", at(20), true)
		d.mustHoldOrigin("https://b.example", at(10), false)
		d.reopen()
		d.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(10)})
		d.wantOrder(at(10), "https://b.example/")
		d.wantWait(at(10), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(20)})
		d.mustHoldOrigin("https://a.example", time.Time{}, false)
		d.reopen()
		d.wantOrder(at(10), "https://a.example/")
	}},
	{"notes", func(d *durableFixture) {
		a, b := mustOrigin("https://a.example"), mustOrigin("https://b.example")
		d.must(d.store.SetNote(d.Context(), a, "key", []byte("value")))
		d.must(d.store.SetNote(d.Context(), b, "key", []byte("gone")))
		d.reopen()
		d.must(d.store.SetNote(d.Context(), b, "key", nil))
		d.reopen()
		got, err := d.store.ReadNote(d.Context(), a, "key")
		d.must(err)
		gone, err := d.store.ReadNote(d.Context(), b, "key")
		d.must(err)
		if string(got) != "value" || gone != nil {
			d.Errorf("notes %q and %q", got, gone)
		}
	}},
	{"every field of an entry", func(d *durableFixture) {
		want := storage.Entry{
			URL: mustURL("https://a.example/?q"), Source: storage.SourcePrerequisite,
			PriorityClass: storage.ClassEarly, Depth: 7,
			Referrer: "https://b.example/from", RobotsFor: mustOrigin("http://c.example:81"), FailedAttempts: 3,
			CallbackData: []byte{0, 1},
			UncleanedURL: mustURL("https://a.example/?q&sid=1"), UseUncleanedURL: true, HTTPSUpgradeTried: true,
			SeedOrigin: mustOrigin("http://c.example:82"),
			Redirects:  9, PriorityRank: 65535, VisitHistorySummary: newVisitHistorySummary(at(-1)),
		}
		d.mustAddExactly(1, want)
		d.reopen()
		if diff := cmp.Diff(want, d.mustLeaseURL(at(0), want.URL.String()).Entry, entryCmpOptions); diff != "" {
			d.Errorf("entry (-added +leased):\n%s", diff)
		}
	}},
	{"marks of sent requests", func(d *durableFixture) {
		d.mustAddExactly(2, newPOSTEntry("https://a.example/", "x=1"), newPOSTEntry("https://b.example/", "x=1"))
		for _, l := range d.mustLeaseUpTo(at(0), 2) {
			d.must(d.store.MarkSent(d.Context(), l, l.URL.Origin() == mustOrigin("https://a.example")))
		}
		d.reopen()
		for _, l := range d.mustLeaseUpTo(at(0), 2) {
			want := newPOSTEntry(l.URL.String(), "x=1")
			want.Sent = l.URL.Origin() == mustOrigin("https://a.example")
			if diff := cmp.Diff(want, l.Entry, entryCmpOptions); diff != "" {
				d.Errorf("entry (-added +leased):\n%s", diff)
			}
		}
		d.mustAddExactly(0, newPOSTEntry("https://a.example/", "x=1"))
	}},
	{"that earlier leases are stale", func(d *durableFixture) {
		d.mustAddExactly(1, linkEntry("https://a.example/"))
		old := d.mustLeaseURL(at(0), "https://a.example/")
		d.reopen()
		d.mustLeaseURL(at(0), "https://a.example/")
		d.wantStale(d.store.Ack(d.Context(), []storage.Ack{{Lease: old}}))
	}},
}
