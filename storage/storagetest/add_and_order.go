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

var addTests = []test{
	{"Add drops what the seen set holds", func(f *fixture) {
		f.add(2, pages("https://a.example/1", "https://a.example/2", "https://a.example/1")...)
		f.add(1, pages("https://a.example/2", "https://a.example/3")...)
		f.drain(at(0), "https://a.example/1", "https://a.example/2", "https://a.example/3")
	}},
	{"the seen set holds what was done, parked and given up", func(f *fixture) {
		all := pages("https://a.example/1", "https://a.example/2", "https://a.example/3")
		f.add(3, all...)
		for _, outcome := range []storage.Outcome{storage.Done, storage.Park, storage.Drop} {
			f.ack(storage.Ack{Lease: f.lease(at(0), 1)[0], Outcome: outcome})
		}
		f.add(0, all...)
		f.none(at(0))
	}},
	{"URLs are seen by scheme, host, port, path and query", func(f *fixture) {
		f.add(5, pages("https://a.example/", "http://a.example/", "https://a.example:8443/",
			"https://a.example/?q", "https://b.example/")...)
	}},
	{"hops pass by the seen set", func(f *fixture) {
		f.add(1, page("https://a.example/robots.txt"))
		again := hop("https://a.example/robots.txt", "https://b.example")
		f.add(1, again)
		f.add(1, again)
		f.add(1, hop("https://a.example/new", "https://b.example"))
		f.add(1, page("https://a.example/new")) // the hop did not make it seen
		f.drain(at(0), "https://a.example/robots.txt", "https://a.example/robots.txt",
			"https://a.example/new", "https://a.example/robots.txt", "https://a.example/new")
	}},
	{"Add stops at most URLs of an origin, and says of each what became of it", func(f *fixture) {
		offer := func(most int, want ...storage.AddResult) {
			entries := append(pages("https://a.example/1", "https://a.example/2", "https://b.example/1", "https://a.example/3"),
				hop("https://a.example/r.txt", "https://a.example"))
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
		for _, l := range f.lease(at(0), 2) { // of both hosts, due as long as each other
			f.ack(storage.Ack{Lease: l})
		}
		offer(2, known, known, known, over, added) // what was visited counts
		offer(0, known, known, known, added, added)
	}},
	{"a lease carries what was added", func(f *fixture) {
		whole := storage.Entry{
			URL:            url("https://a.example/p?q=%20"),
			Source:         storage.SourceSitemap,
			Class:          storage.ClassLate,
			Depth:          300,
			Referrer:       "http://other.example/page",
			RobotsFor:      origin("https://b.example:8443"),
			FailedAttempts: 2,
			Context:        []byte("\x00context\xff"),
			Original:       url("https://a.example/p?q=%20&sid=1"),
			UseOriginal:    true,
			HTTPSUpgraded:  true,
			Redirects:      10,
		}
		near := page("https://a.example/near")
		near.Referrer = "https://a.example/from"
		bare := storage.Entry{URL: url("https://a.example/")}
		odd := page("https://a.example/odd")
		odd.Referrer = "not a \xff URL"
		folded := storage.Entry{URL: url("https://a.example/folded"), HTTPSUpgraded: true}
		for _, want := range []storage.Entry{whole, near, bare, odd, folded} {
			f.add(1, want)
			l := f.take(at(0), want.URL.String())
			if diff := cmp.Diff(want, l.Entry, exact); diff != "" {
				f.Errorf("entry (-added +leased):\n%s", diff)
			}
			f.ack(storage.Ack{Lease: l})
		}
	}},
	{"a context belongs to the store, and a lease's to its holder", func(f *fixture) {
		e := page("https://a.example/")
		e.Context = []byte("given")
		f.add(1, e)
		copy(e.Context, "other")
		copy(f.take(at(0), "https://a.example/").Context, "OTHER")
		l := f.take(at(60), "https://a.example/") // the first ran out
		if string(l.Context) != "given" {
			f.Errorf("context %q, want %q", l.Context, "given")
		}
	}},
	{"Add refuses whole what is beyond a limit", func(f *fixture) {
		good, big := page("https://a.example/"), page("https://a.example/big")
		big.Context = make([]byte, storage.MaxContextBytes+1)
		for name, bad := range map[string]storage.Entry{
			"context":  big,
			"no URL":   {},
			"class":    of(storage.NumClasses, "https://a.example/class"),
			"as found": {URL: url("https://a.example/found"), UseOriginal: true},
			"found":    {URL: url("https://a.example/found"), Original: url("http://a.example/found?sid=1")},
			"depth":    {URL: url("https://a.example/depth"), Depth: -1},
		} {
			if _, err := f.store.Add(f.Context(), []storage.Entry{good, bad}, 0); err == nil {
				f.Errorf("%s: Add returned no error", name)
			}
		}
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingNone})
		big.Context = bytes.Repeat([]byte("c"), storage.MaxContextBytes)
		f.add(2, good, big)
	}},
	{"Add of nothing adds nothing", func(f *fixture) { f.add(0) }},
}

var exact = cmp.Options{
	cmp.Comparer(func(a, b decorum.URL) bool { return a == b }),
	cmp.Comparer(func(a, b decorum.Origin) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

var orderTests = []test{
	{"within an origin by class, then in the order of Add", func(f *fixture) {
		f.add(4, of(storage.ClassLate, "https://a.example/late"), of(storage.ClassNormal, "https://a.example/usual"),
			of(storage.ClassEarly, "https://a.example/early"), of(storage.ClassNormal, "https://a.example/usual2"))
		f.add(3, of(storage.ClassFirst, "https://a.example/first"), of(storage.ClassLate, "https://a.example/late2"),
			of(storage.ClassEarly, "https://a.example/early2"))
		f.drain(at(0), "https://a.example/first", "https://a.example/early", "https://a.example/early2",
			"https://a.example/usual", "https://a.example/usual2", "https://a.example/late", "https://a.example/late2")
	}},
	{"a long queue keeps its order", func(f *fixture) {
		var urls []string
		for i := range 1000 {
			urls = append(urls, "https://a.example/"+string(rune('a'+i%26))+strconv.Itoa(i))
		}
		for i := 0; i < len(urls); i += 50 {
			f.add(50, pages(urls[i:i+50]...)...)
		}
		f.drain(at(0), urls...)
	}},
	{"a queue refilled while it is drained keeps its order", func(f *fixture) {
		next := 0
		for i := range 300 {
			f.add(2, page("https://a.example/"+strconv.Itoa(2*i)), page("https://a.example/"+strconv.Itoa(2*i+1)))
			f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/"+strconv.Itoa(next))})
			next++
		}
		for ; next < 600; next++ {
			f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/"+strconv.Itoa(next))})
		}
	}},
	{"Again goes back to the head of the queue, before every class", func(f *fixture) {
		f.add(2, of(storage.ClassLate, "https://a.example/late"), of(storage.ClassLate, "https://a.example/late2"))
		l := f.take(at(0), "https://a.example/late")
		f.add(1, of(storage.ClassFirst, "https://a.example/first"))
		f.ack(storage.Ack{Lease: l, Outcome: storage.Requeue})
		f.drain(at(0), "https://a.example/late", "https://a.example/first", "https://a.example/late2")
	}},
	{"what was given back keeps its class", func(f *fixture) {
		f.add(1, of(storage.ClassLate, "https://a.example/late"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/late"), Outcome: storage.Requeue})
		if l := f.take(at(0), "https://a.example/late"); l.Class != storage.ClassLate {
			f.Errorf("class %d, want %d", l.Class, storage.ClassLate)
		}
	}},
	{"Later is handed out not before its time, then first of its class", func(f *fixture) {
		f.add(4, of(storage.ClassEarly, "https://a.example/e1"), of(storage.ClassEarly, "https://a.example/e2"),
			of(storage.ClassNormal, "https://a.example/u1"), of(storage.ClassNormal, "https://a.example/u2"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/e1"), Outcome: storage.RetryAt, NotBefore: at(20)})
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/e2"), Outcome: storage.RetryAt, NotBefore: at(10)})
		f.ack(storage.Ack{Lease: f.take(at(1), "https://a.example/u1")})
		f.ack(storage.Ack{Lease: f.take(at(10), "https://a.example/e2")})
		f.drain(at(20), "https://a.example/e1", "https://a.example/u2")
	}},
	{"what was put off goes by time, not by when it was put off", func(f *fixture) {
		var urls []string
		for i := range 200 {
			urls = append(urls, "https://a.example/"+strconv.Itoa(i))
		}
		f.add(200, pages(urls...)...)
		for i, u := range urls {
			when := at(float64(1 + (i*77)%200)) // each time once
			f.ack(storage.Ack{Lease: f.take(at(0), u), Outcome: storage.RetryAt, NotBefore: when})
		}
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(1)})
		for s := 1; s <= 200; s++ {
			l := f.lease(at(float64(s)), 2)
			if len(l) != 1 {
				f.Fatalf("%d URLs due at %d s, want 1", len(l), s)
			}
			f.ack(storage.Ack{Lease: l[0]})
			if s < 200 {
				f.next(at(float64(s)), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(float64(s + 1))})
			}
		}
	}},
}
