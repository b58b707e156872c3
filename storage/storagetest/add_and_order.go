package storagetest

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

var addTests = []testCase{
	{"Add drops entries that the seen set holds", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/1")...)
		f.mustAddExactly(1, linkEntries("https://a.example/2", "https://a.example/3")...)
		f.wantOrder(at(0), "https://a.example/1", "https://a.example/2", "https://a.example/3")
	}},
	{"the seen set keeps URLs that were acked with Done, Park and Drop", func(f *fixture) {
		all := linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")
		f.mustAddExactly(3, all...)
		for _, outcome := range []storage.AckOutcome{storage.Done, storage.Park, storage.Drop} {
			f.mustAck(storage.Ack{Lease: f.mustLeaseUpTo(at(0), 1)[0], Outcome: outcome})
		}
		f.mustAddExactly(0, all...)
		f.wantNoLease(at(0))
	}},
	{"URLs differ in the seen set by scheme, host, port, path and query", func(f *fixture) {
		f.mustAddExactly(5, linkEntries("https://a.example/", "http://a.example/", "https://a.example:8443/",
			"https://a.example/?q", "https://b.example/")...)
	}},
	{"redirects of a robots.txt are queued whatever the seen set has, and not added to it", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/robots.txt"))
		again := robotsRedirectEntry("https://a.example/robots.txt", "https://b.example")
		f.mustAddExactly(1, again)
		f.mustAddExactly(1, again)
		f.mustAddExactly(1, robotsRedirectEntry("https://a.example/new", "https://b.example"))
		f.mustAddExactly(1, linkEntry("https://a.example/new")) // the redirect did not add it to the seen set
		f.wantOrder(at(0), "https://a.example/robots.txt", "https://a.example/robots.txt",
			"https://a.example/new", "https://a.example/robots.txt", "https://a.example/new")
	}},
	{"Add stops at maxPerOrigin URLs of an origin, and returns the outcome of each entry", func(f *fixture) {
		offer := func(most int, want ...storage.AddOutcome) {
			entries := append(linkEntries("https://a.example/1", "https://a.example/2",
				"https://b.example/1", "https://a.example/3"),
				robotsRedirectEntry("https://a.example/r.txt", "https://a.example"))
			fates, err := f.store.Add(f.Context(), entries, most)
			f.must(err)
			if !slices.Equal(fates, want) {
				f.Fatalf("Add of at most %d: %d, want %d", most, fates, want)
			}
		}
		const added, known, over = storage.Added, storage.Duplicate, storage.OverLimit
		offer(1, added, over, added, over, added)
		offer(2, known, added, known, over, added)
		offer(1, known, known, known, over, added)
		for _, l := range f.mustLeaseUpTo(at(0), 2) { // one of each host, which are due equally long
			f.mustAck(storage.Ack{Lease: l})
		}
		offer(2, known, known, known, over, added) // visited URLs count
		offer(0, known, known, known, added, added)
	}},
	{"a lease has every field of the entry that was added", func(f *fixture) {
		whole := storage.Entry{
			URL:               mustURL("https://a.example/p?q=%20"),
			Source:            storage.SourceSitemap,
			PriorityClass:     storage.ClassLate,
			Depth:             300,
			Referrer:          "http://other.example/page",
			RobotsFor:         mustOrigin("https://b.example:8443"),
			FailedAttempts:    2,
			CallbackData:      []byte("\x00context\xff"),
			UncleanedURL:      mustURL("https://a.example/p?q=%20&sid=1"),
			UseUncleanedURL:   true,
			HTTPSUpgradeTried: true,
			Redirects:         10,
			SeedOrigin:        mustOrigin("http://seed.example:81"),
		}
		near := linkEntry("https://a.example/near")
		near.Referrer = "https://a.example/from"
		bare := storage.Entry{URL: mustURL("https://a.example/")}
		odd := linkEntry("https://a.example/odd")
		odd.Referrer = "not a \xff URL"
		folded := storage.Entry{URL: mustURL("https://a.example/folded"), HTTPSUpgradeTried: true}
		seed := storage.Entry{URL: mustURL("https://a.example/seed"), SeedOrigin: mustOrigin("https://a.example")}
		for _, want := range []storage.Entry{whole, near, bare, odd, folded, seed} {
			f.mustAddExactly(1, want)
			l := f.mustLeaseURL(at(0), want.URL.String())
			if diff := cmp.Diff(want, l.Entry, entryCmpOptions); diff != "" {
				f.Errorf("entry (-added +leased):\n%s", diff)
			}
			f.mustAck(storage.Ack{Lease: l})
		}
	}},
	{"callback data is copied: the store has its own, and each lease its own", func(f *fixture) {
		e := linkEntry("https://a.example/")
		e.CallbackData = []byte("given")
		f.mustAddExactly(1, e)
		copy(e.CallbackData, "other")
		copy(f.mustLeaseURL(at(0), "https://a.example/").CallbackData, "OTHER")
		l := f.mustLeaseURL(at(60), "https://a.example/") // the first lease has expired
		if string(l.CallbackData) != "given" {
			f.Errorf("callback data %q, want %q", l.CallbackData, "given")
		}
	}},
	{"Add refuses the whole call if one entry is invalid", func(f *fixture) {
		good, big := linkEntry("https://a.example/"), linkEntry("https://a.example/big")
		big.CallbackData = make([]byte, storage.MaxCallbackDataBytes+1)
		for name, bad := range map[string]storage.Entry{
			"callback data":    big,
			"no URL":           {},
			"class":            entryOfClass(storage.NumClasses, "https://a.example/class"),
			"no uncleaned URL": {URL: mustURL("https://a.example/found"), UseUncleanedURL: true},
			"uncleaned URL of another origin": {URL: mustURL("https://a.example/found"),
				UncleanedURL: mustURL("http://a.example/found?sid=1")},
			"depth": {URL: mustURL("https://a.example/depth"), Depth: -1},
		} {
			if _, err := f.store.Add(f.Context(), []storage.Entry{good, bad}, 0); err == nil {
				f.Errorf("%s: Add returned no error", name)
			}
		}
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingNone})
		big.CallbackData = bytes.Repeat([]byte("c"), storage.MaxCallbackDataBytes)
		f.mustAddExactly(2, good, big)
	}},
	{"Add of nothing adds nothing", func(f *fixture) { f.mustAddExactly(0) }},
}

var entryCmpOptions = cmp.Options{
	cmp.Comparer(func(a, b decorum.URL) bool { return a == b }),
	cmp.Comparer(func(a, b decorum.Origin) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

var orderTests = []testCase{
	{"URLs of an origin are leased by class, then in the order of Add", func(f *fixture) {
		f.mustAddExactly(4, entryOfClass(storage.ClassLate, "https://a.example/late"),
			entryOfClass(storage.ClassNormal, "https://a.example/usual"),
			entryOfClass(storage.ClassEarly, "https://a.example/early"),
			entryOfClass(storage.ClassNormal, "https://a.example/usual2"))
		f.mustAddExactly(3, entryOfClass(storage.ClassFirst, "https://a.example/first"),
			entryOfClass(storage.ClassLate, "https://a.example/late2"),
			entryOfClass(storage.ClassEarly, "https://a.example/early2"))
		f.wantOrder(at(0), "https://a.example/first", "https://a.example/early", "https://a.example/early2",
			"https://a.example/usual", "https://a.example/usual2", "https://a.example/late", "https://a.example/late2")
	}},
	{"a long queue keeps its order", func(f *fixture) {
		var urls []string
		for i := range 1000 {
			urls = append(urls, "https://a.example/"+string(rune('a'+i%26))+strconv.Itoa(i))
		}
		for i := 0; i < len(urls); i += 50 {
			f.mustAddExactly(50, linkEntries(urls[i:i+50]...)...)
		}
		f.wantOrder(at(0), urls...)
	}},
	{"a queue refilled while it is drained keeps its order", func(f *fixture) {
		next := 0
		for i := range 300 {
			f.mustAddExactly(2, linkEntry("https://a.example/"+strconv.Itoa(2*i)),
				linkEntry("https://a.example/"+strconv.Itoa(2*i+1)))
			f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/"+strconv.Itoa(next))})
			next++
		}
		for ; next < 600; next++ {
			f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/"+strconv.Itoa(next))})
		}
	}},
	{"Requeue puts a URL at the head of the queue, before every class", func(f *fixture) {
		f.mustAddExactly(2, entryOfClass(storage.ClassLate, "https://a.example/late"),
			entryOfClass(storage.ClassLate, "https://a.example/late2"))
		l := f.mustLeaseURL(at(0), "https://a.example/late")
		f.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/first"))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		f.wantOrder(at(0), "https://a.example/late", "https://a.example/first", "https://a.example/late2")
	}},
	{"a requeued URL keeps its class", func(f *fixture) {
		f.mustAddExactly(1, entryOfClass(storage.ClassLate, "https://a.example/late"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/late"), Outcome: storage.Requeue})
		if l := f.mustLeaseURL(at(0), "https://a.example/late"); l.PriorityClass != storage.ClassLate {
			f.Errorf("class %d, want %d", l.PriorityClass, storage.ClassLate)
		}
	}},
	{"RetryAt leases a URL not before its time, then first of its class", func(f *fixture) {
		f.mustAddExactly(4, entryOfClass(storage.ClassEarly, "https://a.example/e1"),
			entryOfClass(storage.ClassEarly, "https://a.example/e2"),
			entryOfClass(storage.ClassNormal, "https://a.example/u1"),
			entryOfClass(storage.ClassNormal, "https://a.example/u2"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/e1"),
			Outcome: storage.RetryAt, NotBefore: at(20)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/e2"),
			Outcome: storage.RetryAt, NotBefore: at(10)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(1), "https://a.example/u1")})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(10), "https://a.example/e2")})
		f.wantOrder(at(20), "https://a.example/e1", "https://a.example/u2")
	}},
	{"delayed URLs are leased by time, not in the order of their acks", func(f *fixture) {
		var urls []string
		for i := range 200 {
			urls = append(urls, "https://a.example/"+strconv.Itoa(i))
		}
		f.mustAddExactly(200, linkEntries(urls...)...)
		for i, u := range urls {
			when := at(float64(1 + (i*77)%200)) // each time once
			f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), u), Outcome: storage.RetryAt, NotBefore: when})
		}
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(1)})
		for s := 1; s <= 200; s++ {
			l := f.mustLeaseUpTo(at(float64(s)), 2)
			if len(l) != 1 {
				f.Fatalf("%d URLs due at %d s, want 1", len(l), s)
			}
			f.mustAck(storage.Ack{Lease: l[0]})
			if s < 200 {
				f.wantWait(at(float64(s)),
					storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(float64(s + 1))})
			}
		}
	}},
}
