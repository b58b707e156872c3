package storagetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/storage"
)

// visited returns what a visit that ended at the time leaves of a page.
func visited(end time.Time) *storage.VisitHistory {
	return &storage.VisitHistory{
		VisitedAt: end, Status: 200, ETag: `"v1"`, LastModified: "Fri, 01 Jan 2100 00:00:00 GMT", BodyHash: 1<<63 + 1,
		ComparedVisits: 4, ChangedVisits: 2, TotalComparedInterval: 90 * time.Minute, SitemapLastmod: at(-5.5), ConsecutiveMissing: 1,
	}
}

// rest ends the lease of a page that was visited at the time, until its revisit.
func (f *fixture) rest(l storage.Lease, end, revisit time.Time) {
	f.Helper()
	l.Source, l.History = storage.SourceRevisit, visited(end)
	f.ack(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: revisit})
}

// rested queues a page, visits it at 0 s, and lets it rest until its revisit.
func (f *fixture) rested(u string, revisit time.Time) {
	f.Helper()
	f.add(1, page(u))
	f.rest(f.take(at(0), u), at(0), revisit)
}

// recall wants as many pages to be recalled by one sighting.
func (f *fixture) recall(want int, now time.Time, u string, modified time.Time) {
	f.Helper()
	n, err := f.store.RescheduleModified(f.Context(), now, []storage.SitemapLastmod{{URL: url(u), Modified: modified}})
	f.must(err)
	if n != want {
		f.Fatalf("Recall: %d, want %d", n, want)
	}
}

// ranked returns an entry of class Usual with the rank.
func ranked(rank uint16, u string) storage.Entry {
	e := page(u)
	e.Rank = rank
	return e
}

var rankTests = []test{
	{"within a class by Rank, then in the order of Add", func(f *fixture) {
		f.add(4, ranked(300, "https://a.example/300"), ranked(2, "https://a.example/2"),
			ranked(65535, "https://a.example/65535"), ranked(300, "https://a.example/300b"))
		early := ranked(999, "https://a.example/early")
		early.Class = storage.ClassEarly
		f.add(3, ranked(0, "https://a.example/0"), ranked(2, "https://a.example/2b"), early)
		f.drain(at(0), "https://a.example/early", "https://a.example/0", "https://a.example/2", "https://a.example/2b",
			"https://a.example/300", "https://a.example/300b", "https://a.example/65535")
	}},
	{"what is given back or put off goes before every rank, and keeps its own", func(f *fixture) {
		f.add(3, ranked(7, "https://a.example/7"), ranked(8, "https://a.example/8"), ranked(9, "https://a.example/9"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/7"), Outcome: storage.RetryAt, NotBefore: at(1)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/8"), Outcome: storage.Requeue})
		f.add(1, ranked(0, "https://a.example/0"))
		l := f.take(at(1), "https://a.example/8")
		if l.Rank != 8 {
			f.Errorf("rank %d, want 8", l.Rank)
		}
		f.ack(storage.Ack{Lease: l})
		f.drain(at(1), "https://a.example/7", "https://a.example/0", "https://a.example/9")
	}},
	{"what is revived goes by its Rank", func(f *fixture) {
		f.add(1, ranked(5, "https://a.example/5"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/5"), Outcome: storage.Park})
		f.add(2, ranked(4, "https://a.example/4"), ranked(6, "https://a.example/6"))
		_, err := f.store.Unpark(f.Context(), origin("https://a.example"), func(storage.Entry) bool { return true })
		f.must(err)
		f.drain(at(0), "https://a.example/4", "https://a.example/5", "https://a.example/6")
	}},
	{"hops know no rank", func(f *fixture) {
		first, second := hop("https://a.example/1.txt", "https://a.example"), hop("https://a.example/2.txt", "https://a.example")
		first.Rank = 9
		f.add(2, first, second)
		f.drain(at(0), "https://a.example/1.txt", "https://a.example/2.txt")
	}},
}

var restTests = []test{
	{"Rest hands a page out not before its time, and stays seen", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.add(0, page("https://a.example/1"))
		if c := f.counts(); c.AwaitingRevisit != 1 || c.QueuedURLs != 0 || c.Hosts != 0 || c.SeenURLs != 1 {
			f.Errorf("counts %+v, want one resting and seen, nothing queued", c)
		}
		f.none(at(100).Add(-1))
		l := f.take(at(100), "https://a.example/1")
		if l.Source != storage.SourceRevisit {
			f.Errorf("source %v, want %v", l.Source, storage.SourceRevisit)
		}
		f.ack(storage.Ack{Lease: l})
		f.next(at(1000), storage.Wait{RemainingWork: storage.RemainingNone})
	}},
	{"revisits go by their time", func(f *fixture) {
		for u, s := range map[string]float64{"3": 30, "1": 10, "2": 20} {
			f.rested("https://a.example/"+u, at(s))
		}
		f.drain(at(50), "https://a.example/1", "https://a.example/2", "https://a.example/3")
	}},
	{"a hop that rests is done", func(f *fixture) {
		f.add(1, hop("https://a.example/r.txt", "https://a.example"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/r.txt"), Outcome: storage.RevisitAt, NotBefore: at(10)})
		f.next(at(100), storage.Wait{RemainingWork: storage.RemainingNone})
	}},
	{"a revisit that is given back goes to the head of the queue with its Page", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		l := f.take(at(10), "https://a.example/1")
		f.add(1, of(storage.ClassFirst, "https://a.example/first"))
		f.ack(storage.Ack{Lease: l, Outcome: storage.Requeue})
		if again := f.take(at(10), "https://a.example/1"); again.History == nil || again.History.ETag != `"v1"` {
			f.Errorf("page %+v, want what the visit left", again.History)
		}
	}},
	{"a revisit whose lease ran out goes to the head of the queue", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		f.take(at(10), "https://a.example/1")
		f.add(1, page("https://a.example/2"))
		f.drain(at(70), "https://a.example/1", "https://a.example/2")
	}},
	{"a parked page is revived with its Page", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		f.ack(storage.Ack{Lease: f.take(at(10), "https://a.example/1"), Outcome: storage.Park})
		f.next(at(10), storage.Wait{RemainingWork: storage.RemainingNone})
		_, err := f.store.Unpark(f.Context(), origin("https://a.example"), func(e storage.Entry) bool { return e.History != nil })
		f.must(err)
		l := f.take(at(10), "https://a.example/1")
		if diff := cmp.Diff(visited(at(0)), l.History); diff != "" {
			f.Errorf("page (-want +got):\n%s", diff)
		}
	}},
	{"Resting: only pages whose revisit has not come; At is when the first one does", func(f *fixture) {
		f.rested("https://a.example/1", at(300))
		f.rested("https://b.example/1", at(200))
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(200)})
		f.add(1, page("https://c.example/"))
		l := f.take(at(1), "https://c.example/")
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(61)}) // a lease is out
		f.visit(l, at(50))
		f.next(at(2), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(200)})
	}},
	{"Dormant: At is the end of a hold, resting pages or not", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.add(1, page("https://b.example/"))
		f.hold("https://b.example", at(200), true)
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingSuspended, Until: at(200)})
		f.hold("https://b.example", at(300), false)
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(100)})
	}},
	{"Waiting, once a revisit has come and its host is not due", func(f *fixture) {
		f.add(2, pages("https://a.example/1", "https://a.example/2")...)
		f.rest(f.take(at(0), "https://a.example/1"), at(0), at(10))
		f.visit(f.take(at(0), "https://a.example/2"), at(100))
		f.next(at(9), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(10)})
		f.next(at(11), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(100)})
		f.drain(at(100), "https://a.example/1")
	}},
	{"a hold keeps pages resting; nobody waits for one under a dormant hold", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		f.hold("https://a.example", at(50), true)
		f.next(at(11), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(50)})
		f.drain(at(50), "https://a.example/1")
	}},
	{"revisits take turns with URLs of class Usual and Late", func(f *fixture) {
		for _, u := range []string{"r1", "r2", "r3"} {
			f.rested("https://a.example/"+u, at(10))
		}
		f.add(4, page("https://a.example/u1"), of(storage.ClassLate, "https://a.example/l1"),
			of(storage.ClassFirst, "https://a.example/f1"), of(storage.ClassEarly, "https://a.example/e1"))
		var order []string
		for range 7 {
			l := f.lease(at(10), 1)[0]
			order = append(order, l.URL.PathAndQuery()[1:2])
			f.ack(storage.Ack{Lease: l})
		}
		if got := strings.Join(order, ""); got != "ferurlr" && got != "feurlrr" {
			f.Errorf("handed out %s, want the first and the early, then revisits by turns with the others", got)
		}
		f.next(at(10), storage.Wait{RemainingWork: storage.RemainingNone})
	}},
	{"a lease carries its Page, which is its holder's to write to", func(f *fixture) {
		e, want := page("https://a.example/1"), visited(at(-60))
		e.History = visited(at(-60))
		f.add(1, e)
		e.History.ETag = "other" // what was added is the store's own copy
		l := f.take(at(0), "https://a.example/1")
		if diff := cmp.Diff(want, l.History); diff != "" {
			f.Fatalf("page (-added +leased):\n%s", diff)
		}
		l.History.ETag = "OTHER"
		l = f.take(at(60), "https://a.example/1") // the first ran out
		if diff := cmp.Diff(want, l.History); diff != "" {
			f.Fatalf("page (-added +leased again):\n%s", diff)
		}
		f.ack(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(70)})
		l.History.ETag = "other"
		if diff := cmp.Diff(want, f.take(at(70), "https://a.example/1").History); diff != "" {
			f.Errorf("page (-acked +leased):\n%s", diff)
		}
	}},
	{"a page that was never visited has no Page", func(f *fixture) {
		f.add(1, page("https://a.example/1"))
		if l := f.take(at(0), "https://a.example/1"); l.History != nil {
			f.Errorf("page %+v, want none", l.History)
		}
	}},
	{"Add and Ack refuse whole what is beyond the limit of a validator or a memo", testLimits},
	{"a Memo goes with its host, over all its origins", func(f *fixture) {
		f.add(2, pages("https://a.example/1", "http://a.example/2")...)
		first := f.lease(at(0), 1)[0]
		if first.Host.Stats != nil {
			f.Errorf("memo %q of a host that has none", first.Host.Stats)
		}
		f.ack(storage.Ack{Lease: first, Host: &storage.HostState{Stats: []byte("memo")}})
		second := f.lease(at(0), 1)[0]
		if string(second.Host.Stats) != "memo" {
			f.Errorf("memo %q, want the one of the last ack", second.Host.Stats)
		}
		f.ack(storage.Ack{Lease: second, Outcome: storage.Requeue})
		f.ack(storage.Ack{Lease: f.lease(at(0), 1)[0], Outcome: storage.Requeue, Host: &storage.HostState{}})
		if l := f.lease(at(0), 1)[0]; len(l.Host.Stats) > 0 {
			f.Errorf("memo %q, want it gone with the ack that has none", l.Host.Stats)
		}
	}},
}

func testLimits(f *fixture) {
	long := strings.Repeat("v", storage.MaxValidatorBytes+1)
	f.add(1, page("https://a.example/1"))
	for name, p := range map[string]*storage.VisitHistory{"ETag": {ETag: long}, "LastModified": {LastModified: long}} {
		e := page("https://a.example/2")
		e.History = p
		if _, err := f.store.Add(f.Context(), []storage.Entry{page("https://a.example/3"), e}, 0); err == nil {
			f.Errorf("Add of a page with a long %s returned no error", name)
		}
	}
	l := f.take(at(0), "https://a.example/1")
	for name, a := range map[string]storage.Ack{
		"validator": {Lease: l, Outcome: storage.RevisitAt},
		"memo":      {Lease: l, Host: &storage.HostState{Stats: make([]byte, storage.MaxStatsBytes+1)}},
	} {
		if name == "validator" {
			a.Lease.History = &storage.VisitHistory{ETag: long}
		}
		if err := f.store.Ack(f.Context(), []storage.Ack{a}); err == nil {
			f.Errorf("Ack with a long %s returned no error", name)
		}
	}
	memo := make([]byte, storage.MaxStatsBytes)
	memo[0] = 1
	l.History = &storage.VisitHistory{ETag: long[1:], LastModified: long[1:]}
	f.ack(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(1), Host: &storage.HostState{Stats: memo}}) // it was not ended before
	l = f.take(at(1), "https://a.example/1")
	if len(l.Host.Stats) != storage.MaxStatsBytes || len(l.History.ETag) != storage.MaxValidatorBytes {
		f.Errorf("memo of %d bytes, ETag of %d; want all that the limits allow", len(l.Host.Stats), len(l.History.ETag))
	}
	f.none(at(1)) // nothing of the refused Adds
}

var recallTests = []test{
	{"Recall makes a page due at once that was visited before it was modified, and notes the time", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.recall(1, at(20), "https://a.example/1", at(10))
		want := visited(at(0))
		want.SitemapLastmod = at(10)
		if diff := cmp.Diff(want, f.take(at(20), "https://a.example/1").History); diff != "" {
			f.Errorf("page (-want +leased):\n%s", diff)
		}
	}},
	{"Recall leaves a page that was visited since it was modified", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.recall(0, at(20), "https://a.example/1", at(0)) // visited at 0
		f.recall(0, at(20), "https://a.example/1", at(-10))
		f.next(at(20), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(100)})
		if l := f.take(at(100), "https://a.example/1"); !l.History.SitemapLastmod.Equal(at(-5.5)) {
			f.Errorf("listed %v, want it as it was", l.History.SitemapLastmod)
		}
	}},
	{"Recall makes no page due later than it is", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		f.rested("https://a.example/2", at(11))
		f.recall(1, at(20), "https://a.example/1", at(5))
		f.drain(at(20), "https://a.example/1", "https://a.example/2")
	}},
	{"Recall brings one earlier than Next said, and no host before its Due", func(f *fixture) {
		f.add(1, page("https://a.example/1"))
		l := f.take(at(0), "https://a.example/1")
		l.History = visited(at(0))
		f.ack(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(100), Host: &storage.HostState{Due: at(50)}})
		f.recall(1, at(20), "https://a.example/1", at(10))
		f.next(at(20), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(50)})
		f.drain(at(50), "https://a.example/1")
	}},
	{"Recall passes over URLs that do not rest", func(f *fixture) {
		f.add(4, pages("https://a.example/queued", "https://a.example/out", "https://a.example/parked", "https://a.example/done")...)
		f.add(1, of(storage.ClassEarly, "https://a.example/later"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/later"), Outcome: storage.RetryAt, NotBefore: at(90)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/queued"), Outcome: storage.RetryAt, NotBefore: at(80)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/out"), Outcome: storage.Park})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/parked"), Outcome: storage.Done})
		f.take(at(0), "https://a.example/done")
		before := f.counts()
		for _, u := range []string{"queued", "out", "parked", "done", "later", "unknown"} {
			f.recall(0, at(1), "https://a.example/"+u, at(1000))
		}
		f.recall(0, at(1), "https://unknown.example/", at(1000))
		if diff := cmp.Diff(before, f.counts()); diff != "" {
			f.Errorf("counts changed:\n%s", diff)
		}
	}},
	{"Recall of a revisit that is out does nothing", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		l := f.take(at(10), "https://a.example/1")
		f.recall(0, at(11), "https://a.example/1", at(11))
		f.rest(l, at(12), at(90))
		f.next(at(13), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(90)})
		f.recall(1, at(13), "https://a.example/1", at(13)) // now it rests again
		f.drain(at(13), "https://a.example/1")
	}},
	{"Recall takes a page without a Page for one never visited", func(f *fixture) {
		f.add(1, page("https://a.example/1"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/1"), Outcome: storage.RevisitAt, NotBefore: at(100)})
		f.recall(1, at(1), "https://a.example/1", at(-1000))
		if l := f.take(at(1), "https://a.example/1"); l.History == nil || !l.History.SitemapLastmod.Equal(at(-1000)) {
			f.Errorf("page %+v, want the listed time", l.History)
		}
	}},
	{"Recall counts each sighting once", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.rested("https://a.example/2", at(100))
		n, err := f.store.RescheduleModified(f.Context(), at(20), []storage.SitemapLastmod{
			{URL: url("https://a.example/1"), Modified: at(10)}, {URL: url("https://a.example/3"), Modified: at(10)},
			{URL: url("https://a.example/2"), Modified: at(10)},
		})
		f.must(err)
		if n != 2 {
			f.Errorf("recalled %d, want 2", n)
		}
		if got := len(f.lease(at(20), 1)); got != 1 {
			f.Errorf("%d leases, want 1", got)
		}
	}},
}
