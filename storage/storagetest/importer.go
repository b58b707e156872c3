package storagetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// runImporter tests the Stores that open returns, if they are Importers, and
// Inspectors besides.
func runImporter(t *testing.T, open func(t testing.TB) storage.Store) {
	for _, tt := range importTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, open(t))
			in, ok := f.store.(storage.Importer)
			i, ok2 := f.store.(storage.Inspector)
			if !ok || !ok2 {
				t.Skip("the Store is no Importer")
			}
			tt.run(&importing{&inspection{f, i}, in, func() *inspection {
				other := newFixture(t, open(t))
				return &inspection{other, other.store.(storage.Inspector)}
			}})
		})
	}
}

// An importing is a fixture whose Store takes over what others hold.
type importing struct {
	*inspection
	storage.Importer
	other func() *inspection // another Store of the kind, empty
}

func (i *importing) take(parcels ...storage.OriginDump) {
	i.Helper()
	i.must(i.Import(i.Context(), parcels))
}

// parcels returns all that a Store holds of its origins.
func (i *inspection) parcels() (all []storage.OriginDump) {
	i.Helper()
	for _, o := range i.all() {
		p := storage.OriginDump{Origin: o.Origin, Host: &o.Host, HeldUntil: o.HeldUntil, Suspended: o.Suspended}
		for in := range storage.StateParked + 1 {
			i.must(i.URLs(i.Context(), o.Origin, in, func(e storage.Entry, at time.Time) bool {
				p.URLs = append(p.URLs, storage.StoredEntry{Entry: e, State: in, NotBefore: at})
				return true
			}))
		}
		i.must(i.SeenFingerprints(i.Context(), o.Origin, func(f uint64) bool {
			p.SeenFingerprints = append(p.SeenFingerprints, f)
			return true
		}))
		slices.Sort(p.SeenFingerprints)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b storage.OriginDump) int { return strings.Compare(a.Origin.String(), b.Origin.String()) })
	return all
}

var importTests = []struct {
	name string
	run  func(*importing)
}{
	{"Import takes over all that an Inspector tells", func(i *importing) {
		from := i.other()
		fillOdd(from)
		want, counts := from.parcels(), from.counts()
		for range 2 { // the second time nothing changes
			i.take(withoutHops(want)...)
			i.take(onlyHops(i.inspection, want)...)
			if diff := cmp.Diff(want, i.parcels(), exact, cmp.Comparer(sameHost), cmp.Comparer(time.Time.Equal)); diff != "" {
				i.Fatalf("held by the other (-) and here (+):\n%s", diff)
			}
			got := i.counts()
			got.DueHosts, counts.DueHosts = 0, 0 // by the latest time that each was told
			if diff := cmp.Diff(counts, got); diff != "" {
				i.Fatalf("counts of the other (-) and here (+):\n%s", diff)
			}
		}
	}},
	{"what was imported is handed out as it would have been", func(i *importing) {
		from := i.other()
		fillOdd(from)
		i.take(from.parcels()...)
		for s := 20.0; s < 400; s += 10 { // the other knows that so much has passed
			want, got := byURL(from.lease(at(s), 10)), byURL(i.lease(at(s), 10))
			if len(want) != len(got) {
				i.Fatalf("at %g s: %d leases, want %d", s, len(got), len(want))
			}
			for k := range got {
				if diff := cmp.Diff(want[k].Entry, got[k].Entry, exact); diff != "" {
					i.Fatalf("at %g s, of the other (-) and here (+):\n%s", s, diff)
				}
				from.visit(want[k], at(s+15))
				i.visit(got[k], at(s+15))
			}
		}
	}},
	{"what was only seen is known", func(i *importing) {
		u := url("https://a.example/was")
		var many []uint64
		for n := range uint64(3000) {
			many = append(many, n*0x9e3779b97f4a7c15)
		}
		i.take(storage.OriginDump{Origin: u.Origin(), SeenFingerprints: append(many, storage.Fingerprint(u))})
		i.take(storage.OriginDump{Origin: u.Origin(), SeenFingerprints: many})
		i.add(0, page(u.String()))
		i.add(1, page("https://a.example/is"))
		if c := i.counts(); c.SeenURLs != 3002 || c.QueuedURLs != 1 {
			i.Errorf("counts %+v, want 3002 seen and 1 queued", c)
		}
		fates, err := i.store.Add(i.Context(), pages("https://a.example/more"), 3002)
		i.must(err)
		if fates[0] != storage.OverLimit {
			i.Errorf("fate %d: what was imported does not count", fates[0])
		}
	}},
	{"a host is not due before it was, whatever is imported", func(i *importing) {
		o := origin("https://a.example")
		i.take(storage.OriginDump{Origin: o, Host: &storage.HostState{Due: at(50), Delay: time.Second}, URLs: []storage.StoredEntry{{Entry: page("https://a.example/")}}})
		i.take(storage.OriginDump{Origin: o, Host: &storage.HostState{Due: at(20), Delay: 2 * time.Second}})
		i.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(50)})
		if l := i.fixture.take(at(50), "https://a.example/"); l.Host.Delay != 2*time.Second {
			i.Errorf("gap %v, want the one that came last", l.Host.Delay)
		}
	}},
	{"what is there stays, and goes first", func(i *importing) {
		i.add(1, page("https://a.example/1"))
		i.take(storage.OriginDump{Origin: origin("https://a.example"), URLs: []storage.StoredEntry{
			{Entry: page("https://a.example/1"), State: storage.StateParked}, {Entry: page("https://a.example/2")}}})
		i.drain(at(0), "https://a.example/1", "https://a.example/2")
	}},
	{"what rests can be recalled, what is parked revived", func(i *importing) {
		rested, o := page("https://a.example/r"), origin("https://a.example")
		rested.History = visited(at(-10))
		i.take(storage.OriginDump{Origin: o, URLs: []storage.StoredEntry{{Entry: rested, State: storage.StateAwaitingRevisit, NotBefore: at(1000)}, {Entry: page("https://a.example/p"), State: storage.StateParked}}})
		i.next(at(0), storage.Wait{RemainingWork: storage.RemainingRevisits, Until: at(1000)})
		n, err := i.store.RescheduleModified(i.Context(), at(1), []storage.SitemapLastmod{{URL: rested.URL, Modified: at(0)}})
		i.must(err)
		m, err := i.store.Unpark(i.Context(), o, func(storage.Entry) bool { return true })
		i.must(err)
		if n != 1 || m != 1 {
			i.Errorf("%d recalled and %d revived, want 1 each", n, m)
		}
		i.drain(at(1), "https://a.example/r", "https://a.example/p")
	}},
	{"a bad parcel has the call refused whole", func(i *importing) {
		o, good := origin("https://a.example"), page("https://a.example/")
		for name, p := range map[string]storage.OriginDump{
			"no origin":      {URLs: []storage.StoredEntry{{Entry: good}}},
			"another origin": {Origin: origin("https://b.example"), URLs: []storage.StoredEntry{{Entry: good}}},
			"no state":       {Origin: o, URLs: []storage.StoredEntry{{Entry: good, State: storage.StateParked + 1}}},
			"bad entry":      {Origin: o, URLs: []storage.StoredEntry{{Entry: of(storage.NumClasses, "https://a.example/x")}}},
			"hop that rests": {Origin: o, URLs: []storage.StoredEntry{{Entry: hop("https://a.example/r", "https://b.example"), State: storage.StateAwaitingRevisit}}},
			"long memo":      {Origin: o, Host: &storage.HostState{Stats: make([]byte, storage.MaxStatsBytes+1)}},
		} {
			if err := i.Import(i.Context(), []storage.OriginDump{{Origin: o, URLs: []storage.StoredEntry{{Entry: good}}}, p}); err == nil {
				i.Errorf("%s: no error", name)
			}
		}
		if c := i.counts(); c != (storage.Counts{}) {
			i.Errorf("counts %+v, want none", c)
		}
	}},
	{"a closed Store is refused", func(i *importing) {
		i.must(i.store.Close())
		if err := i.Import(i.Context(), []storage.OriginDump{{Origin: origin("https://a.example")}}); err == nil {
			i.Error("no error")
		}
	}},
}

// byURL sorts leases: of hosts that are due since the same time either may go first.
func byURL(leases []storage.Lease) []storage.Lease {
	slices.SortFunc(leases, func(a, b storage.Lease) int { return strings.Compare(a.URL.String(), b.URL.String()) })
	return leases
}

// fillOdd gives a Store something of all that there can be.
func fillOdd(i *inspection) {
	full := ranked(7, "https://a.example/full?q")
	full.Depth, full.Referrer, full.Context, full.FailedAttempts, full.Redirects = 3, "https://b.example/", []byte("\x00c"), 2, 1
	sent := post("https://a.example/form", "x=1")
	i.add(6, pages("https://a.example/done", "https://a.example/later", "https://a.example/rest", "https://a.example/park", "https://a.example/later2", "https://a.example/1")...)
	for _, end := range []storage.Ack{
		{Outcome: storage.Done}, {Outcome: storage.RetryAt, NotBefore: at(70)}, {Outcome: storage.RevisitAt, NotBefore: at(90)}, {Outcome: storage.Park},
		{Outcome: storage.RetryAt, NotBefore: at(30), Host: &storage.HostState{Due: at(20), Delay: 5 * time.Second, Slots: 1, ConsecutiveFailures: 2, Stats: []byte("\xffmemo")}},
	} {
		end.Lease = i.lease(at(0), 1)[0]
		end.Lease.History = visited(at(0))
		i.ack(end)
	}
	i.add(2, full, sent)
	i.add(1, of(storage.ClassLate, "https://a.example/late"))
	i.add(1, of(storage.ClassEarly, "https://a.example/early"))
	i.add(2, page("http://a.example/plain"), hop("https://a.example/robots2", "https://a.example"))
	i.hold("http://a.example", at(200), true)
	i.hold("https://c.example", at(100), false)
	l := i.fixture.take(at(20), "https://a.example/robots2")
	i.ack(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(40)})
	i.add(2, page("https://b.example/"), hop("https://b.example/robots2", "https://a.example"))
}

// split returns the parcels with those of their URLs that keep keeps.
func split(parcels []storage.OriginDump, keep func(*storage.StoredEntry) bool) (filtered []storage.OriginDump) {
	for _, p := range parcels {
		p.URLs = slices.DeleteFunc(slices.Clone(p.URLs), func(k storage.StoredEntry) bool { return !keep(&k) })
		filtered = append(filtered, p)
	}
	return filtered
}

func withoutHops(parcels []storage.OriginDump) []storage.OriginDump {
	return split(parcels, func(k *storage.StoredEntry) bool { return k.RobotsFor.IsZero() })
}

// onlyHops returns the hops among the parcels that the Store does not have yet.
func onlyHops(i *inspection, parcels []storage.OriginDump) []storage.OriginDump {
	have := map[[2]decorum.Origin]bool{}
	for _, p := range i.parcels() {
		for _, k := range p.URLs {
			have[[2]decorum.Origin{p.Origin, k.RobotsFor}] = !k.RobotsFor.IsZero()
		}
	}
	return split(parcels, func(k *storage.StoredEntry) bool {
		return !k.RobotsFor.IsZero() && !have[[2]decorum.Origin{k.URL.Origin(), k.RobotsFor}]
	})
}
