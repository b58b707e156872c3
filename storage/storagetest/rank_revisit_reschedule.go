package storagetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/storage"
)

// newVisitHistorySummary returns the summary of a visit that ended at the given time.
func newVisitHistorySummary(end time.Time) *storage.VisitHistorySummary {
	return &storage.VisitHistorySummary{
		VisitedAt: end, Status: 200, ETag: `"v1"`, LastModified: "Fri, 01 Jan 2100 00:00:00 GMT", BodyHash: 1<<63 + 1,
		ComparedVisits: 4, ChangedVisits: 2, TotalComparedInterval: 90 * time.Minute,
		SitemapLastmod: at(-5.5), ConsecutiveMissing: 1,
		FreshFor: 36 * time.Hour, FreshBy: "max-age=129600", VariantKey: "user-agent:0123456789abcdef",
		EncodedBodyLen: 1 << 40,
	}
}

// ackUntilRevisit acks the lease of a page whose visit ended at end. The page then awaits its revisit.
func (f *fixture) ackUntilRevisit(l storage.Lease, end, revisit time.Time) {
	f.Helper()
	l.Source, l.VisitHistorySummary = storage.SourceRevisit, newVisitHistorySummary(end)
	f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: revisit})
}

// addAwaitingRevisit adds a page and visits it at 0 s. The page then awaits its revisit.
func (f *fixture) addAwaitingRevisit(u string, revisit time.Time) {
	f.Helper()
	f.mustAddExactly(1, linkEntry(u))
	f.ackUntilRevisit(f.mustLeaseURL(at(0), u), at(0), revisit)
}

// rescheduleAndWantCount calls RescheduleByLastmod for one page, and checks the result.
func (f *fixture) rescheduleAndWantCount(want int, now time.Time, u string, modified time.Time) {
	f.Helper()
	n, err := f.store.RescheduleByLastmod(f.Context(), now,
		[]storage.SitemapLastmod{{URL: mustURL(u), Modified: modified}})
	f.must(err)
	if n != want {
		f.Fatalf("RescheduleByLastmod: %d, want %d", n, want)
	}
}

// entryWithRank returns an entry of ClassNormal with a rank.
func entryWithRank(rank uint16, u string) storage.Entry {
	e := linkEntry(u)
	e.PriorityRank = rank
	return e
}

var rankTests = []testCase{
	{"URLs of a class are leased by rank, then in the order of Add", func(f *fixture) {
		f.mustAddExactly(4, entryWithRank(300, "https://a.example/300"), entryWithRank(2, "https://a.example/2"),
			entryWithRank(65535, "https://a.example/65535"), entryWithRank(300, "https://a.example/300b"))
		early := entryWithRank(999, "https://a.example/early")
		early.PriorityClass = storage.ClassEarly
		f.mustAddExactly(3, entryWithRank(0, "https://a.example/0"), entryWithRank(2, "https://a.example/2b"), early)
		f.wantOrder(at(0), "https://a.example/early", "https://a.example/0",
			"https://a.example/2", "https://a.example/2b",
			"https://a.example/300", "https://a.example/300b", "https://a.example/65535")
	}},
	{"requeued and delayed URLs go before every rank, and keep their own", func(f *fixture) {
		f.mustAddExactly(3, entryWithRank(7, "https://a.example/7"), entryWithRank(8, "https://a.example/8"),
			entryWithRank(9, "https://a.example/9"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/7"),
			Outcome: storage.RetryAt, NotBefore: at(1)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/8"), Outcome: storage.Requeue})
		f.mustAddExactly(1, entryWithRank(0, "https://a.example/0"))
		l := f.mustLeaseURL(at(1), "https://a.example/8")
		if l.PriorityRank != 8 {
			f.Errorf("rank %d, want 8", l.PriorityRank)
		}
		f.mustAck(storage.Ack{Lease: l})
		f.wantOrder(at(1), "https://a.example/7", "https://a.example/0", "https://a.example/9")
	}},
	{"unparked URLs are leased by rank", func(f *fixture) {
		f.mustAddExactly(1, entryWithRank(5, "https://a.example/5"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/5"), Outcome: storage.Park})
		f.mustAddExactly(2, entryWithRank(4, "https://a.example/4"), entryWithRank(6, "https://a.example/6"))
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(storage.Entry) bool {
			return true
		})
		f.must(err)
		f.wantOrder(at(0), "https://a.example/4", "https://a.example/5", "https://a.example/6")
	}},
	{"redirects of a robots.txt have no rank", func(f *fixture) {
		first, second := robotsRedirectEntry("https://a.example/1.txt", "https://a.example"),
			robotsRedirectEntry("https://a.example/2.txt", "https://a.example")
		first.PriorityRank = 9
		f.mustAddExactly(2, first, second)
		f.wantOrder(at(0), "https://a.example/1.txt", "https://a.example/2.txt")
	}},
}

var revisitTests = []testCase{
	{"RevisitAt leases a page not before its time, and keeps it in the seen set", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.mustAddExactly(0, linkEntry("https://a.example/1"))
		if c := f.mustGetCounts(); c.AwaitingRevisit != 1 || c.QueuedURLs != 0 ||
			c.QueuedHosts != 0 || c.SeenURLs != 1 {
			f.Errorf("counts %+v, want one that awaits a revisit and is seen, nothing queued", c)
		}
		f.wantNoLease(at(100).Add(-1))
		l := f.mustLeaseURL(at(100), "https://a.example/1")
		if l.Source != storage.SourceRevisit {
			f.Errorf("source %v, want %v", l.Source, storage.SourceRevisit)
		}
		f.mustAck(storage.Ack{Lease: l})
		f.wantWait(at(1000), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"revisits are leased by their time", func(f *fixture) {
		for u, s := range map[string]float64{"3": 30, "1": 10, "2": 20} {
			f.addAwaitingRevisit("https://a.example/"+u, at(s))
		}
		f.wantOrder(at(50), "https://a.example/1", "https://a.example/2", "https://a.example/3")
	}},
	{"RevisitAt of a redirect of a robots.txt is Done", func(f *fixture) {
		f.mustAddExactly(1, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/r.txt"),
			Outcome: storage.RevisitAt, NotBefore: at(10)})
		f.wantWait(at(100), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a requeued revisit goes to the head of the queue with its VisitHistorySummary", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		l := f.mustLeaseURL(at(10), "https://a.example/1")
		f.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/first"))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		if again := f.mustLeaseURL(at(10), "https://a.example/1"); again.VisitHistorySummary == nil ||
			again.VisitHistorySummary.ETag != `"v1"` {
			f.Errorf("history %+v, want the one of the visit", again.VisitHistorySummary)
		}
	}},
	{"a revisit whose lease expired goes to the head of the queue", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.mustLeaseURL(at(10), "https://a.example/1")
		f.mustAddExactly(1, linkEntry("https://a.example/2"))
		f.wantOrder(at(70), "https://a.example/1", "https://a.example/2")
	}},
	{"a parked page is unparked with its VisitHistorySummary", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(10), "https://a.example/1"), Outcome: storage.Park})
		f.wantWait(at(10), storage.Wait{RemainingWorkKind: storage.RemainingNone})
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(e storage.Entry) bool {
			return e.VisitHistorySummary != nil
		})
		f.must(err)
		l := f.mustLeaseURL(at(10), "https://a.example/1")
		if diff := cmp.Diff(newVisitHistorySummary(at(0)), l.VisitHistorySummary); diff != "" {
			f.Errorf("history (-want +got):\n%s", diff)
		}
	}},
	{"RemainingRevisits: only pages whose revisit is not due; Until is the first revisit", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(300))
		f.addAwaitingRevisit("https://b.example/1", at(200))
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(200)})
		f.mustAddExactly(1, linkEntry("https://c.example/"))
		l := f.mustLeaseURL(at(1), "https://c.example/")
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(61)}) // a lease is out
		f.ackVisit(l, at(50))
		f.wantWait(at(2), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(200)})
	}},
	{"RemainingSuspended: Until is the end of a hold, also if pages await their revisit", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.mustAddExactly(1, linkEntry("https://b.example/"))
		f.mustHoldOrigin("https://b.example", at(200), true)
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(200)})
		f.mustHoldOrigin("https://b.example", at(300), false)
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
	}},
	{"RemainingPending once a revisit is due and its host is not", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.ackUntilRevisit(f.mustLeaseURL(at(0), "https://a.example/1"), at(0), at(10))
		f.ackVisit(f.mustLeaseURL(at(0), "https://a.example/2"), at(100))
		f.wantWait(at(9), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(10)})
		f.wantWait(at(11), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
		f.wantOrder(at(100), "https://a.example/1")
	}},
	{"a hold delays revisits; under a suspended hold Until is its end", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.mustHoldOrigin("https://a.example", at(50), true)
		f.wantWait(at(11), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(50)})
		f.wantOrder(at(50), "https://a.example/1")
	}},
	{"revisits take turns with URLs of ClassNormal and ClassLate", func(f *fixture) {
		for _, u := range []string{"r1", "r2", "r3"} {
			f.addAwaitingRevisit("https://a.example/"+u, at(10))
		}
		f.mustAddExactly(4, linkEntry("https://a.example/u1"), entryOfClass(storage.ClassLate, "https://a.example/l1"),
			entryOfClass(storage.ClassFirst, "https://a.example/f1"),
			entryOfClass(storage.ClassEarly, "https://a.example/e1"))
		var order []string
		for range 7 {
			l := f.mustLeaseUpTo(at(10), 1)[0]
			order = append(order, l.URL.PathAndQuery()[1:2])
			f.mustAck(storage.Ack{Lease: l})
		}
		if got := strings.Join(order, ""); got != "ferurlr" && got != "feurlrr" {
			f.Errorf("leased %s, want the first and the early, then revisits in turn with the others", got)
		}
		f.wantWait(at(10), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a lease has a VisitHistorySummary of its own, which its holder may change", func(f *fixture) {
		e, want := linkEntry("https://a.example/1"), newVisitHistorySummary(at(-60))
		e.VisitHistorySummary = newVisitHistorySummary(at(-60))
		f.mustAddExactly(1, e)
		e.VisitHistorySummary.ETag = "other" // the store has its own copy
		l := f.mustLeaseURL(at(0), "https://a.example/1")
		if diff := cmp.Diff(want, l.VisitHistorySummary); diff != "" {
			f.Fatalf("history (-added +leased):\n%s", diff)
		}
		l.VisitHistorySummary.ETag = "OTHER"
		l = f.mustLeaseURL(at(60), "https://a.example/1") // the first lease has expired
		if diff := cmp.Diff(want, l.VisitHistorySummary); diff != "" {
			f.Fatalf("history (-added +leased again):\n%s", diff)
		}
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(70)})
		l.VisitHistorySummary.ETag = "other"
		if diff := cmp.Diff(want, f.mustLeaseURL(at(70), "https://a.example/1").VisitHistorySummary); diff != "" {
			f.Errorf("history (-acked +leased):\n%s", diff)
		}
	}},
	{"a page that was never visited has no VisitHistorySummary", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		if l := f.mustLeaseURL(at(0), "https://a.example/1"); l.VisitHistorySummary != nil {
			f.Errorf("history %+v, want none", l.VisitHistorySummary)
		}
	}},
	{"Add and Ack refuse the whole call if a validator or statistics are too long", testSizeLimits},
	{"EncodedStats belong to the host, for all its origins", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "http://a.example/2")...)
		first := f.mustLeaseUpTo(at(0), 1)[0]
		if first.HostState.EncodedStats != nil {
			f.Errorf("statistics %q of a new host, want none", first.HostState.EncodedStats)
		}
		f.mustAck(storage.Ack{Lease: first, HostState: &storage.HostState{EncodedStats: []byte("memo")}})
		second := f.mustLeaseUpTo(at(0), 1)[0]
		if string(second.HostState.EncodedStats) != "memo" {
			f.Errorf("statistics %q, want those of the last ack", second.HostState.EncodedStats)
		}
		f.mustAck(storage.Ack{Lease: second, Outcome: storage.Requeue})
		f.mustAck(storage.Ack{Lease: f.mustLeaseUpTo(at(0), 1)[0], Outcome: storage.Requeue,
			HostState: &storage.HostState{}})
		if l := f.mustLeaseUpTo(at(0), 1)[0]; len(l.HostState.EncodedStats) > 0 {
			f.Errorf("statistics %q, want none after an ack without", l.HostState.EncodedStats)
		}
	}},
}

func testSizeLimits(f *fixture) {
	long := strings.Repeat("v", storage.MaxValidatorBytes+1)
	f.mustAddExactly(1, linkEntry("https://a.example/1"))
	for name, p := range map[string]*storage.VisitHistorySummary{"ETag": {ETag: long},
		"LastModified": {LastModified: long}, "FreshBy": {FreshBy: long}, "VariantKey": {VariantKey: long},
		"FreshFor": {FreshFor: -1}, "EncodedBodyLen": {EncodedBodyLen: -1}} {
		e := linkEntry("https://a.example/2")
		e.VisitHistorySummary = p
		if _, err := f.store.Add(f.Context(), []storage.Entry{linkEntry("https://a.example/3"), e}, 0); err == nil {
			f.Errorf("Add of a page with an invalid %s returned no error", name)
		}
	}
	l := f.mustLeaseURL(at(0), "https://a.example/1")
	for name, a := range map[string]storage.Ack{
		"validator":  {Lease: l, Outcome: storage.RevisitAt},
		"statistics": {Lease: l, HostState: &storage.HostState{EncodedStats: make([]byte, storage.MaxStatsBytes+1)}},
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
	// The refused acks did not end the lease.
	f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(1),
		HostState: &storage.HostState{EncodedStats: stats}})
	l = f.mustLeaseURL(at(1), "https://a.example/1")
	if len(l.HostState.EncodedStats) != storage.MaxStatsBytes ||
		len(l.VisitHistorySummary.ETag) != storage.MaxValidatorBytes {
		f.Errorf("statistics of %d bytes, ETag of %d; want the lengths of the limits", len(l.HostState.EncodedStats),
			len(l.VisitHistorySummary.ETag))
	}
	f.wantNoLease(at(1)) // the refused Adds have queued nothing
}

var rescheduleTests = []testCase{
	{"RescheduleByLastmod makes a page due that was modified after its visit, and records the time", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.rescheduleAndWantCount(1, at(20), "https://a.example/1", at(10))
		want := newVisitHistorySummary(at(0))
		want.SitemapLastmod = at(10)
		if diff := cmp.Diff(want, f.mustLeaseURL(at(20), "https://a.example/1").VisitHistorySummary); diff != "" {
			f.Errorf("history (-want +leased):\n%s", diff)
		}
	}},
	{"RescheduleByLastmod skips a page that was visited after it was modified", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.rescheduleAndWantCount(0, at(20), "https://a.example/1", at(0)) // visited at 0
		f.rescheduleAndWantCount(0, at(20), "https://a.example/1", at(-10))
		f.wantWait(at(20), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(100)})
		if l := f.mustLeaseURL(at(100), "https://a.example/1"); !l.VisitHistorySummary.SitemapLastmod.Equal(at(-5.5)) {
			f.Errorf("sitemap lastmod %v, want it unchanged", l.VisitHistorySummary.SitemapLastmod)
		}
	}},
	{"RescheduleByLastmod makes no page due later than before", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		f.addAwaitingRevisit("https://a.example/2", at(11))
		f.rescheduleAndWantCount(1, at(20), "https://a.example/1", at(5))
		f.wantOrder(at(20), "https://a.example/1", "https://a.example/2")
	}},
	{"RescheduleByLastmod makes a page due before Wait.Until, and no host before its Due", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		l := f.mustLeaseURL(at(0), "https://a.example/1")
		l.VisitHistorySummary = newVisitHistorySummary(at(0))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(100),
			HostState: &storage.HostState{Due: at(50)}})
		f.rescheduleAndWantCount(1, at(20), "https://a.example/1", at(10))
		f.wantWait(at(20), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(50)})
		f.wantOrder(at(50), "https://a.example/1")
	}},
	{"RescheduleByLastmod skips URLs that await no revisit", func(f *fixture) {
		f.mustAddExactly(4, linkEntries("https://a.example/queued", "https://a.example/out", "https://a.example/parked",
			"https://a.example/done")...)
		f.mustAddExactly(1, entryOfClass(storage.ClassEarly, "https://a.example/later"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/later"),
			Outcome: storage.RetryAt, NotBefore: at(90)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/queued"),
			Outcome: storage.RetryAt, NotBefore: at(80)})
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
	{"RescheduleByLastmod skips a leased revisit", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(10))
		l := f.mustLeaseURL(at(10), "https://a.example/1")
		f.rescheduleAndWantCount(0, at(11), "https://a.example/1", at(11))
		f.ackUntilRevisit(l, at(12), at(90))
		f.wantWait(at(13), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(90)})
		f.rescheduleAndWantCount(1, at(13), "https://a.example/1", at(13)) // now it awaits its revisit again
		f.wantOrder(at(13), "https://a.example/1")
	}},
	{"RescheduleByLastmod treats a page without a VisitHistorySummary as never visited", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"),
			Outcome: storage.RevisitAt, NotBefore: at(100)})
		f.rescheduleAndWantCount(1, at(1), "https://a.example/1", at(-1000))
		if l := f.mustLeaseURL(at(1), "https://a.example/1"); l.VisitHistorySummary == nil ||
			!l.VisitHistorySummary.SitemapLastmod.Equal(at(-1000)) {
			f.Errorf("history %+v, want the time of the sitemap", l.VisitHistorySummary)
		}
	}},
	{"RescheduleByLastmod counts each rescheduled page once", func(f *fixture) {
		f.addAwaitingRevisit("https://a.example/1", at(100))
		f.addAwaitingRevisit("https://a.example/2", at(100))
		n, err := f.store.RescheduleByLastmod(f.Context(), at(20), []storage.SitemapLastmod{
			{URL: mustURL("https://a.example/1"), Modified: at(10)},
			{URL: mustURL("https://a.example/3"), Modified: at(10)},
			{URL: mustURL("https://a.example/2"), Modified: at(10)},
		})
		f.must(err)
		if n != 2 {
			f.Errorf("rescheduled %d, want 2", n)
		}
		if got := len(f.mustLeaseUpTo(at(20), 1)); got != 1 {
			f.Errorf("%d leases, want 1", got)
		}
	}},
}
