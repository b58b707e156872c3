package storagetest

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/storage"
)

// visited returns what a visit that ended at the time leaves of a page.
func visited(end time.Time) *storage.Page {
	return &storage.Page{
		Visited: end, Status: 200, ETag: `"v1"`, LastModified: "Fri, 01 Jan 2100 00:00:00 GMT", Hash: 1<<63 + 1,
		Visits: 4, Changes: 2, Span: 90 * time.Minute, Listed: at(-5.5), Missing: 1,
	}
}

// rest ends the lease of a page that was visited at the time, until its revisit.
func (f *fixture) rest(l storage.Lease, end, revisit time.Time) {
	f.Helper()
	l.Source, l.Page = storage.Revisit, visited(end)
	f.ack(storage.Ack{Lease: l, Outcome: storage.Rest, At: revisit})
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
	n, err := f.store.Recall(f.Context(), now, []storage.Sighting{{URL: url(u), Modified: modified}})
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
		early.Class = storage.Early
		f.add(3, ranked(0, "https://a.example/0"), ranked(2, "https://a.example/2b"), early)
		f.drain(at(0), "https://a.example/early", "https://a.example/0", "https://a.example/2", "https://a.example/2b",
			"https://a.example/300", "https://a.example/300b", "https://a.example/65535")
	}},
	{"what is given back or put off goes before every rank, and keeps its own", func(f *fixture) {
		f.add(3, ranked(7, "https://a.example/7"), ranked(8, "https://a.example/8"), ranked(9, "https://a.example/9"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/7"), Outcome: storage.Later, At: at(1)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/8"), Outcome: storage.Again})
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
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/5"), Outcome: storage.Parked})
		f.add(2, ranked(4, "https://a.example/4"), ranked(6, "https://a.example/6"))
		_, err := f.store.Revive(f.Context(), origin("https://a.example"), func(storage.Entry) bool { return true })
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
		if c := f.counts(); c.Resting != 1 || c.Queued != 0 || c.Hosts != 0 || c.Seen != 1 {
			f.Errorf("counts %+v, want one resting and seen, nothing queued", c)
		}
		f.none(at(100).Add(-1))
		l := f.take(at(100), "https://a.example/1")
		if l.Source != storage.Revisit {
			f.Errorf("source %v, want %v", l.Source, storage.Revisit)
		}
		f.ack(storage.Ack{Lease: l})
		f.next(at(1000), storage.Next{Left: storage.Nothing})
	}},
	{"revisits go by their time", func(f *fixture) {
		for u, s := range map[string]float64{"3": 30, "1": 10, "2": 20} {
			f.rested("https://a.example/"+u, at(s))
		}
		f.drain(at(50), "https://a.example/1", "https://a.example/2", "https://a.example/3")
	}},
	{"a hop that rests is done", func(f *fixture) {
		f.add(1, hop("https://a.example/r.txt", "https://a.example"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/r.txt"), Outcome: storage.Rest, At: at(10)})
		f.next(at(100), storage.Next{Left: storage.Nothing})
	}},
	{"a revisit that is given back goes to the head of the queue with its Page", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		l := f.take(at(10), "https://a.example/1")
		f.add(1, of(storage.First, "https://a.example/first"))
		f.ack(storage.Ack{Lease: l, Outcome: storage.Again})
		if again := f.take(at(10), "https://a.example/1"); again.Page == nil || again.Page.ETag != `"v1"` {
			f.Errorf("page %+v, want what the visit left", again.Page)
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
		f.ack(storage.Ack{Lease: f.take(at(10), "https://a.example/1"), Outcome: storage.Parked})
		f.next(at(10), storage.Next{Left: storage.Nothing})
		_, err := f.store.Revive(f.Context(), origin("https://a.example"), func(e storage.Entry) bool { return e.Page != nil })
		f.must(err)
		l := f.take(at(10), "https://a.example/1")
		if diff := cmp.Diff(visited(at(0)), l.Page); diff != "" {
			f.Errorf("page (-want +got):\n%s", diff)
		}
	}},
	{"Resting: only pages whose revisit has not come; At is when the first one does", func(f *fixture) {
		f.rested("https://a.example/1", at(300))
		f.rested("https://b.example/1", at(200))
		f.next(at(1), storage.Next{Left: storage.Resting, At: at(200)})
		f.add(1, page("https://c.example/"))
		l := f.take(at(1), "https://c.example/")
		f.next(at(1), storage.Next{Left: storage.Waiting, At: at(61)}) // a lease is out
		f.visit(l, at(50))
		f.next(at(2), storage.Next{Left: storage.Resting, At: at(200)})
	}},
	{"Dormant: At is the end of a hold, resting pages or not", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.add(1, page("https://b.example/"))
		f.hold("https://b.example", at(200), true)
		f.next(at(1), storage.Next{Left: storage.Dormant, At: at(200)})
		f.hold("https://b.example", at(300), false)
		f.next(at(1), storage.Next{Left: storage.Waiting, At: at(100)})
	}},
	{"Waiting, once a revisit has come and its host is not due", func(f *fixture) {
		f.add(2, pages("https://a.example/1", "https://a.example/2")...)
		f.rest(f.take(at(0), "https://a.example/1"), at(0), at(10))
		f.visit(f.take(at(0), "https://a.example/2"), at(100))
		f.next(at(9), storage.Next{Left: storage.Resting, At: at(10)})
		f.next(at(11), storage.Next{Left: storage.Waiting, At: at(100)})
		f.drain(at(100), "https://a.example/1")
	}},
	{"a hold keeps pages resting; nobody waits for one under a dormant hold", func(f *fixture) {
		f.rested("https://a.example/1", at(10))
		f.hold("https://a.example", at(50), true)
		f.next(at(11), storage.Next{Left: storage.Resting, At: at(50)})
		f.drain(at(50), "https://a.example/1")
	}},
	{"revisits take turns with URLs of class Usual and Late", func(f *fixture) {
		for _, u := range []string{"r1", "r2", "r3"} {
			f.rested("https://a.example/"+u, at(10))
		}
		f.add(4, page("https://a.example/u1"), of(storage.Late, "https://a.example/l1"),
			of(storage.First, "https://a.example/f1"), of(storage.Early, "https://a.example/e1"))
		var order []string
		for range 7 {
			l := f.lease(at(10), 1)[0]
			order = append(order, l.URL.PathAndQuery()[1:2])
			f.ack(storage.Ack{Lease: l})
		}
		if got := strings.Join(order, ""); got != "ferurlr" && got != "feurlrr" {
			f.Errorf("handed out %s, want the first and the early, then revisits by turns with the others", got)
		}
		f.next(at(10), storage.Next{Left: storage.Nothing})
	}},
	{"a lease carries its Page, which is its holder's to write to", func(f *fixture) {
		e, want := page("https://a.example/1"), visited(at(-60))
		e.Page = visited(at(-60))
		f.add(1, e)
		e.Page.ETag = "other" // what was added is the store's own copy
		l := f.take(at(0), "https://a.example/1")
		if diff := cmp.Diff(want, l.Page); diff != "" {
			f.Fatalf("page (-added +leased):\n%s", diff)
		}
		l.Page.ETag = "OTHER"
		l = f.take(at(60), "https://a.example/1") // the first ran out
		if diff := cmp.Diff(want, l.Page); diff != "" {
			f.Fatalf("page (-added +leased again):\n%s", diff)
		}
		f.ack(storage.Ack{Lease: l, Outcome: storage.Rest, At: at(70)})
		l.Page.ETag = "other"
		if diff := cmp.Diff(want, f.take(at(70), "https://a.example/1").Page); diff != "" {
			f.Errorf("page (-acked +leased):\n%s", diff)
		}
	}},
	{"a page that was never visited has no Page", func(f *fixture) {
		f.add(1, page("https://a.example/1"))
		if l := f.take(at(0), "https://a.example/1"); l.Page != nil {
			f.Errorf("page %+v, want none", l.Page)
		}
	}},
	{"Add and Ack refuse whole what is beyond the limit of a validator or a memo", testLimits},
	{"a Memo goes with its host, over all its origins", func(f *fixture) {
		f.add(2, pages("https://a.example/1", "http://a.example/2")...)
		first := f.lease(at(0), 1)[0]
		if first.Host.Memo != nil {
			f.Errorf("memo %q of a host that has none", first.Host.Memo)
		}
		f.ack(storage.Ack{Lease: first, Host: &storage.Host{Memo: []byte("memo")}})
		second := f.lease(at(0), 1)[0]
		if string(second.Host.Memo) != "memo" {
			f.Errorf("memo %q, want the one of the last ack", second.Host.Memo)
		}
		f.ack(storage.Ack{Lease: second, Outcome: storage.Again})
		f.ack(storage.Ack{Lease: f.lease(at(0), 1)[0], Outcome: storage.Again, Host: &storage.Host{}})
		if l := f.lease(at(0), 1)[0]; len(l.Host.Memo) > 0 {
			f.Errorf("memo %q, want it gone with the ack that has none", l.Host.Memo)
		}
	}},
}

func testLimits(f *fixture) {
	long := strings.Repeat("v", storage.MaxValidator+1)
	f.add(1, page("https://a.example/1"))
	for name, p := range map[string]*storage.Page{"ETag": {ETag: long}, "LastModified": {LastModified: long}} {
		e := page("https://a.example/2")
		e.Page = p
		if _, err := f.store.Add(f.Context(), []storage.Entry{page("https://a.example/3"), e}, 0); err == nil {
			f.Errorf("Add of a page with a long %s returned no error", name)
		}
	}
	l := f.take(at(0), "https://a.example/1")
	for name, a := range map[string]storage.Ack{
		"validator": {Lease: l, Outcome: storage.Rest},
		"memo":      {Lease: l, Host: &storage.Host{Memo: make([]byte, storage.MaxMemo+1)}},
	} {
		if name == "validator" {
			a.Lease.Page = &storage.Page{ETag: long}
		}
		if err := f.store.Ack(f.Context(), []storage.Ack{a}); err == nil {
			f.Errorf("Ack with a long %s returned no error", name)
		}
	}
	memo := make([]byte, storage.MaxMemo)
	memo[0] = 1
	l.Page = &storage.Page{ETag: long[1:], LastModified: long[1:]}
	f.ack(storage.Ack{Lease: l, Outcome: storage.Rest, At: at(1), Host: &storage.Host{Memo: memo}}) // it was not ended before
	l = f.take(at(1), "https://a.example/1")
	if len(l.Host.Memo) != storage.MaxMemo || len(l.Page.ETag) != storage.MaxValidator {
		f.Errorf("memo of %d bytes, ETag of %d; want all that the limits allow", len(l.Host.Memo), len(l.Page.ETag))
	}
	f.none(at(1)) // nothing of the refused Adds
}

var recallTests = []test{
	{"Recall makes a page due at once that was visited before it was modified, and notes the time", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.recall(1, at(20), "https://a.example/1", at(10))
		want := visited(at(0))
		want.Listed = at(10)
		if diff := cmp.Diff(want, f.take(at(20), "https://a.example/1").Page); diff != "" {
			f.Errorf("page (-want +leased):\n%s", diff)
		}
	}},
	{"Recall leaves a page that was visited since it was modified", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.recall(0, at(20), "https://a.example/1", at(0)) // visited at 0
		f.recall(0, at(20), "https://a.example/1", at(-10))
		f.next(at(20), storage.Next{Left: storage.Resting, At: at(100)})
		if l := f.take(at(100), "https://a.example/1"); !l.Page.Listed.Equal(at(-5.5)) {
			f.Errorf("listed %v, want it as it was", l.Page.Listed)
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
		l.Page = visited(at(0))
		f.ack(storage.Ack{Lease: l, Outcome: storage.Rest, At: at(100), Host: &storage.Host{Due: at(50)}})
		f.recall(1, at(20), "https://a.example/1", at(10))
		f.next(at(20), storage.Next{Left: storage.Waiting, At: at(50)})
		f.drain(at(50), "https://a.example/1")
	}},
	{"Recall passes over URLs that do not rest", func(f *fixture) {
		f.add(4, pages("https://a.example/queued", "https://a.example/out", "https://a.example/parked", "https://a.example/done")...)
		f.add(1, of(storage.Early, "https://a.example/later"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/later"), Outcome: storage.Later, At: at(90)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/queued"), Outcome: storage.Later, At: at(80)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/out"), Outcome: storage.Parked})
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
		f.next(at(13), storage.Next{Left: storage.Resting, At: at(90)})
		f.recall(1, at(13), "https://a.example/1", at(13)) // now it rests again
		f.drain(at(13), "https://a.example/1")
	}},
	{"Recall takes a page without a Page for one never visited", func(f *fixture) {
		f.add(1, page("https://a.example/1"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/1"), Outcome: storage.Rest, At: at(100)})
		f.recall(1, at(1), "https://a.example/1", at(-1000))
		if l := f.take(at(1), "https://a.example/1"); l.Page == nil || !l.Page.Listed.Equal(at(-1000)) {
			f.Errorf("page %+v, want the listed time", l.Page)
		}
	}},
	{"Recall counts each sighting once", func(f *fixture) {
		f.rested("https://a.example/1", at(100))
		f.rested("https://a.example/2", at(100))
		n, err := f.store.Recall(f.Context(), at(20), []storage.Sighting{
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
