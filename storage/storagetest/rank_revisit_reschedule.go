package storagetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/storage"
)

// newVisitHistorySummary returns what a visit that ended at the time leaves of a page.
func newVisitHistorySummary(end time.Time) *storage.VisitHistorySummary {
	return &storage.VisitHistorySummary{
		VisitedAt: end, Status: 200, ETag: `"v1"`, LastModified: "Fri, 01 Jan 2100 00:00:00 GMT", BodyHash: 1<<63 + 1,
		ComparedVisits: 4, ChangedVisits: 2, TotalComparedInterval: 90 * time.Minute, SitemapLastmod: at(-5.5), ConsecutiveMissing: 1,
	}
}

// ackUntilRevisit ends the lease of a page that was visited at the time, until its revisit.
func (f *fixture) ackUntilRevisit(l storage.Lease, end, revisit time.Time) {
	f.Helper()
	l.Source, l.VisitHistorySummary = storage.SourceRevisit, newVisitHistorySummary(end)
	f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: revisit})
}

// addAwaitingRevisit queues a page, visits it at 0 s, and lets it rest until its revisit.
func (f *fixture) addAwaitingRevisit(u string, revisit time.Time) {
	f.Helper()
	f.mustAddExactly(1, linkEntry(u))
	f.ackUntilRevisit(f.mustLeaseURL(at(0), u), at(0), revisit)
}

// rescheduleAndWantCount wants as many pages to be recalled by one sighting.
func (f *fixture) rescheduleAndWantCount(want int, now time.Time, u string, modified time.Time) {
	f.Helper()
	n, err := f.store.RescheduleByLastmod(f.Context(), now, []storage.SitemapLastmod{{URL: mustURL(u), Modified: modified}})
	f.must(err)
	if n != want {
		f.Fatalf("Recall: %d, want %d", n, want)
	}
}

// entryWithRank returns an entry of class Usual with the rank.
func entryWithRank(rank uint16, u string) storage.Entry {
	e := linkEntry(u)
	e.PriorityRank = rank
	return e
}

var rankTests = []testCase{
	{"within a class by Rank, then in the order of Add", func(f *fixture) {
		f.mustAddExactly(4, entryWithRank(300, "https://a.example/300"), entryWithRank(2, "https://a.example/2"),
			entryWithRank(65535, "https://a.example/65535"), entryWithRank(300, "https://a.example/300b"))
		early := entryWithRank(999, "https://a.example/early")
		early.PriorityClass = storage.ClassEarly
		f.mustAddExactly(3, entryWithRank(0, "https://a.example/0"), entryWithRank(2, "https://a.example/2b"), early)
		f.wantOrder(at(0), "https://a.example/early", "https://a.example/0", "https://a.example/2", "https://a.example/2b",
			"https://a.example/300", "https://a.example/300b", "https://a.example/65535")
	}},
	{"what is given back or put off goes before every rank, and keeps its own", func(f *fixture) {
		f.mustAddExactly(3, entryWithRank(7, "https://a.example/7"), entryWithRank(8, "https://a.example/8"), entryWithRank(9, "https://a.example/9"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/7"), Outcome: storage.RetryAt, NotBefore: at(1)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/8"), Outcome: storage.Requeue})
		f.mustAddExactly(1, entryWithRank(0, "https://a.example/0"))
		l := f.mustLeaseURL(at(1), "https://a.example/8")
		if l.PriorityRank != 8 {
			f.Errorf("rank %d, want 8", l.PriorityRank)
		}
		f.mustAck(storage.Ack{Lease: l})
		f.wantOrder(at(1), "https://a.example/7", "https://a.example/0", "https://a.example/9")
	}},
	{"what is revived goes by its Rank", func(f *fixture) {
		f.mustAddExactly(1, entryWithRank(5, "https://a.example/5"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/5"), Outcome: storage.Park})
		f.mustAddExactly(2, entryWithRank(4, "https://a.example/4"), entryWithRank(6, "https://a.example/6"))
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(storage.Entry) bool { return true })
		f.must(err)
		f.wantOrder(at(0), "https://a.example/4", "https://a.example/5", "https://a.example/6")
	}},
	{"hops know no rank", func(f *fixture) {
		first, second := robotsRedirectEntry("https://a.example/1.txt", "https://a.example"), robotsRedirectEntry("https://a.example/2.txt", "https://a.example")
		first.PriorityRank = 9
		f.mustAddExactly(2, first, second)
		f.wantOrder(at(0), "https://a.example/1.txt", "https://a.example/2.txt")
	}},
}

var revisitTests = []testCase{
	{"Rest hands a page out not before its time, and stays seen", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.mustAddExactly(0, linkEntry("https://a.example/1"))
		if c := f.mustGetCounts(); c.AwaitingRevisit != 1 || c.QueuedURLs != 0 || c.QueuedHosts != 0 || c.SeenURLs != 1 {
			f.Errorf("counts %+v, want one resting and seen, nothing queued", c)
		}
		f.wantNoLease(at(100).Add(-1))
		l := f.mustLeaseURL(at(100), "https://a.example/1")
		if l.Source != storage.SourceRevisit {
			f.Errorf("source %v, want %v", l.Source, storage.SourceRevisit)
		}
		f.mustAck(storage.Ack{Lease: l})
		f.wantWait(at(1000), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"revisits go by their time", func(f *fixture) {
		for u, s := range map[string]float64{"3": 30, "1": 10, "2": 20} {
			f.addAwaitingRevisit("https://a.example/"+u, at(s))
		}
		f.wantOrder(at(50), "https://a.example/1", "https://a.example/2", "https://a.example/3")
	}},
	{"a hop that rests is done", func(f *fixture) {
		f.mustAddExactly(1, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/r.txt"), Outcome: storage.RevisitAt, NotBefore: at(10)})
		f.wantWait(at(100), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a revisit that is given back goes to the head of the queue with its Page", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		l := f.mustLeaseURL(at(10), "https://a.example/1")
		f.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/first"))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		if again := f.mustLeaseURL(at(10), "https://a.example/1"); again.VisitHistorySummary == nil || again.VisitHistorySummary.ETag != `"v1"` {
			f.Errorf("page %+v, want what the visit left", again.VisitHistorySummary)
		}
	}},
	{"a revisit whose lease ran out goes to the head of the queue", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.mustLeaseURL(at(10), "https://a.example/1")
		f.mustAddExactly(1, linkEntry("https://a.example/2"))
		f.wantOrder(at(70), "https://a.example/1", "https://a.example/2")
	}},
	{"a parked page is revived with its Page", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(10), "https://a.example/1"), Outcome: storage.Park})
		f.wantWait(at(10), storage.Wait{RemainingWorkKind: storage.RemainingNone})
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(e storage.Entry) bool { return e.VisitHistorySummary != nil })
		f.must(err)
		l := f.mustLeaseURL(at(10), "https://a.example/1")
		if diff := cmp.Diff(newVisitHistorySummary(at(0)), l.VisitHistorySummary); diff != "" {
			f.Errorf("page (-want +got):\n%s", diff)
		}
	}},
	{"Resting: only pages whose revisit has not come; At is when the first one does", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(300))
		f.addAwaitingRevisit("https://b.example/1", at(200))
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(200)})
		f.mustAddExactly(1, linkEntry("https://c.example/"))
		l := f.mustLeaseURL(at(1), "https://c.example/")
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(61)}) // a lease is out
		f.ackVisit(l, at(50))
		f.wantWait(at(2), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(200)})
	}},
	{"Dormant: At is the end of a hold, resting pages or not", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.mustAddExactly(1, linkEntry("https://b.example/"))
		f.mustHoldOrigin("https://b.example", at(200), true)
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(200)})
		f.mustHoldOrigin("https://b.example", at(300), false)
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
	}},
	{"Waiting, once a revisit has come and its host is not due", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.ackUntilRevisit(f.mustLeaseURL(at(0), "https://a.example/1"), at(0), at(10))
		f.ackVisit(f.mustLeaseURL(at(0), "https://a.example/2"), at(100))
		f.wantWait(at(9), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(10)})
		f.wantWait(at(11), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
		f.wantOrder(at(100), "https://a.example/1")
	}},
	{"a hold keeps pages resting; nobody waits for one under a dormant hold", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.mustHoldOrigin("https://a.example", at(50), true)
		f.wantWait(at(11), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(50)})
		f.wantOrder(at(50), "https://a.example/1")
	}},
	{"revisits take turns with URLs of class Usual and Late", func(f *fixture) {
		for _, u := range []string{"r1", "r2", "r3"} {
			f.addAwaitingRevisit("https://a.example/"+u, at(10))
		}
		f.mustAddExactly(4, linkEntry("https://a.example/u1"), entryOfClass(storage.ClassLate, "https://a.example/l1"),
			entryOfClass(storage.ClassFirst, "https://a.example/f1"), entryOfClass(storage.ClassEarly, "https://a.example/e1"))
		var order []string
		for range 7 {
			l := f.mustLeaseUpTo(at(10), 1)[0]
			order = append(order, l.URL.PathAndQuery()[1:2])
			f.mustAck(storage.Ack{Lease: l})
		}
		if got := strings.Join(order, ""); got != "ferurlr" && got != "feurlrr" {
			f.Errorf("handed out %s, want the first and the early, then revisits by turns with the others", got)
		}
		f.wantWait(at(10), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a lease carries its Page, which is its holder's to write to", func(f *fixture) {
		e, want := linkEntry("https://a.example/1"), newVisitHistorySummary(at(-60))
		e.VisitHistorySummary = newVisitHistorySummary(at(-60))
		f.mustAddExactly(1, e)
		e.VisitHistorySummary.ETag = "other" // what was added is the store's own copy
		l := f.mustLeaseURL(at(0), "https://a.example/1")
		if diff := cmp.Diff(want, l.VisitHistorySummary); diff != "" {
			f.Fatalf("page (-added +leased):\n%s", diff)
		}
		l.VisitHistorySummary.ETag = "OTHER"
		l = f.mustLeaseURL(at(60), "https://a.example/1") // the first ran out
		if diff := cmp.Diff(want, l.VisitHistorySummary); diff != "" {
			f.Fatalf("page (-added +leased again):\n%s", diff)
		}
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(70)})
		l.VisitHistorySummary.ETag = "other"
		if diff := cmp.Diff(want, f.mustLeaseURL(at(70), "https://a.example/1").VisitHistorySummary); diff != "" {
			f.Errorf("page (-acked +leased):\n%s", diff)
		}
	}},
	{"a page that was never visited has no Page", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		if l := f.mustLeaseURL(at(0), "https://a.example/1"); l.VisitHistorySummary != nil {
			f.Errorf("page %+v, want none", l.VisitHistorySummary)
		}
	}},
	{"Add and Ack refuse whole what is beyond the limit of a validator or a memo", testSizeLimits},
	{"a Memo goes with its host, over all its origins", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "http://a.example/2")...)
		first := f.mustLeaseUpTo(at(0), 1)[0]
		if first.HostState.EncodedStats != nil {
			f.Errorf("memo %q of a host that has none", first.HostState.EncodedStats)
		}
		f.mustAck(storage.Ack{Lease: first, HostState: &storage.HostState{EncodedStats: []byte("memo")}})
		second := f.mustLeaseUpTo(at(0), 1)[0]
		if string(second.HostState.EncodedStats) != "memo" {
			f.Errorf("memo %q, want the one of the last ack", second.HostState.EncodedStats)
		}
		f.mustAck(storage.Ack{Lease: second, Outcome: storage.Requeue})
		f.mustAck(storage.Ack{Lease: f.mustLeaseUpTo(at(0), 1)[0], Outcome: storage.Requeue, HostState: &storage.HostState{}})
		if l := f.mustLeaseUpTo(at(0), 1)[0]; len(l.HostState.EncodedStats) > 0 {
			f.Errorf("memo %q, want it gone with the ack that has none", l.HostState.EncodedStats)
		}
	}},
}

func testSizeLimits(f *fixture) {
	long := strings.Repeat("v", storage.MaxValidatorBytes+1)
	f.mustAddExactly(1, linkEntry("https://a.example/1"))
	for name, p := range map[string]*storage.VisitHistorySummary{"ETag": {ETag: long}, "LastModified": {LastModified: long}} {
		e := linkEntry("https://a.example/2")
		e.VisitHistorySummary = p
		if _, err := f.store.Add(f.Context(), []storage.Entry{linkEntry("https://a.example/3"), e}, 0); err == nil {
			f.Errorf("Add of a page with a long %s returned no error", name)
		}
	}
	l := f.mustLeaseURL(at(0), "https://a.example/1")
	for name, a := range map[string]storage.Ack{
		"validator": {Lease: l, Outcome: storage.RevisitAt},
		"memo":      {Lease: l, HostState: &storage.HostState{EncodedStats: make([]byte, storage.MaxStatsBytes+1)}},
	} {
		if name == "validator" {
			a.Lease.VisitHistorySummary = &storage.VisitHistorySummary{ETag: long}
		}
		if err := f.store.Ack(f.Context(), []storage.Ack{a}); err == nil {
			f.Errorf("Ack with a long %s returned no error", name)
		}
	}
	stats := make([]byte, storage.MaxStatsBytes)
	stats[0] = 1
	l.VisitHistorySummary = &storage.VisitHistorySummary{ETag: long[1:], LastModified: long[1:]}
	f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(1), HostState: &storage.HostState{EncodedStats: stats}}) // it was not ended before
	l = f.mustLeaseURL(at(1), "https://a.example/1")
	if len(l.HostState.EncodedStats) != storage.MaxStatsBytes || len(l.VisitHistorySummary.ETag) != storage.MaxValidatorBytes {
		f.Errorf("memo of %d bytes, ETag of %d; want all that the limits allow", len(l.HostState.EncodedStats), len(l.VisitHistorySummary.ETag))
	}
	f.wantNoLease(at(1)) // nothing of the refused Adds
}

var rescheduleTests = []testCase{
	{"Recall makes a page due at once that was visited before it was modified, and notes the time", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.rescheduleAndWantCount(1, at(20), "https://a.example/1", at(10))
		want := newVisitHistorySummary(at(0))
		want.SitemapLastmod = at(10)
		if diff := cmp.Diff(want, f.mustLeaseURL(at(20), "https://a.example/1").VisitHistorySummary); diff != "" {
			f.Errorf("page (-want +leased):\n%s", diff)
		}
	}},
	{"Recall leaves a page that was visited since it was modified", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.rescheduleAndWantCount(0, at(20), "https://a.example/1", at(0)) // visited at 0
		f.rescheduleAndWantCount(0, at(20), "https://a.example/1", at(-10))
		f.wantWait(at(20), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(100)})
		if l := f.mustLeaseURL(at(100), "https://a.example/1"); !l.VisitHistorySummary.SitemapLastmod.Equal(at(-5.5)) {
			f.Errorf("listed %v, want it as it was", l.VisitHistorySummary.SitemapLastmod)
		}
	}},
	{"Recall makes no page due later than it is", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.addAwaitingRevisit("https://a.example/2", at(11))
		f.rescheduleAndWantCount(1, at(20), "https://a.example/1", at(5))
		f.wantOrder(at(20), "https://a.example/1", "https://a.example/2")
	}},
	{"Recall brings one earlier than Next said, and no host before its Due", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		l := f.mustLeaseURL(at(0), "https://a.example/1")
		l.VisitHistorySummary = newVisitHistorySummary(at(0))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(100), HostState: &storage.HostState{Due: at(50)}})
		f.rescheduleAndWantCount(1, at(20), "https://a.example/1", at(10))
		f.wantWait(at(20), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(50)})
		f.wantOrder(at(50), "https://a.example/1")
	}},
	{"Recall passes over URLs that do not rest", func(f *fixture) {
		f.mustAddExactly(4, linkEntries("https://a.example/queued", "https://a.example/out", "https://a.example/parked", "https://a.example/done")...)
		f.mustAddExactly(1, entryOfClass(storage.ClassEarly, "https://a.example/later"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/later"), Outcome: storage.RetryAt, NotBefore: at(90)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/queued"), Outcome: storage.RetryAt, NotBefore: at(80)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/out"), Outcome: storage.Park})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/parked"), Outcome: storage.Done})
		f.mustLeaseURL(at(0), "https://a.example/done")
		before := f.mustGetCounts()
		for _, u := range []string{"queued", "out", "parked", "done", "later", "unknown"} {
			f.rescheduleAndWantCount(0, at(1), "https://a.example/"+u, at(1000))
		}
		f.rescheduleAndWantCount(0, at(1), "https://unknown.example/", at(1000))
		if diff := cmp.Diff(before, f.mustGetCounts()); diff != "" {
			f.Errorf("counts changed:\n%s", diff)
		}
	}},
	{"Recall of a revisit that is out does nothing", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		l := f.mustLeaseURL(at(10), "https://a.example/1")
		f.rescheduleAndWantCount(0, at(11), "https://a.example/1", at(11))
		f.ackUntilRevisit(l, at(12), at(90))
		f.wantWait(at(13), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(90)})
		f.rescheduleAndWantCount(1, at(13), "https://a.example/1", at(13)) // now it rests again
		f.wantOrder(at(13), "https://a.example/1")
	}},
	{"Recall takes a page without a Page for one never visited", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"), Outcome: storage.RevisitAt, NotBefore: at(100)})
		f.rescheduleAndWantCount(1, at(1), "https://a.example/1", at(-1000))
		if l := f.mustLeaseURL(at(1), "https://a.example/1"); l.VisitHistorySummary == nil || !l.VisitHistorySummary.SitemapLastmod.Equal(at(-1000)) {
			f.Errorf("page %+v, want the listed time", l.VisitHistorySummary)
		}
	}},
	{"Recall counts each sighting once", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.addAwaitingRevisit("https://a.example/2", at(100))
		n, err := f.store.RescheduleByLastmod(f.Context(), at(20), []storage.SitemapLastmod{
			{URL: mustURL("https://a.example/1"), Modified: at(10)}, {URL: mustURL("https://a.example/3"), Modified: at(10)},
			{URL: mustURL("https://a.example/2"), Modified: at(10)},
		})
		f.must(err)
		if n != 2 {
			f.Errorf("recalled %d, want 2", n)
		}
		if got := len(f.mustLeaseUpTo(at(20), 1)); got != 1 {
			f.Errorf("%d leases, want 1", got)
		}
	}},
}
