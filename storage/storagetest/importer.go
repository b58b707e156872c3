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

// runImporterTests tests the Stores that open returns, if they are Importers.
func runImporterTests(t *testing.T, open func(t testing.TB) storage.Store) {
	for _, tt := range importTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, open(t))
			in, ok := f.store.(storage.Importer)
			i, ok2 := f.store.(storage.Inspector)
			if !ok || !ok2 {
				t.Skip("the Store does not implement storage.Importer")
			}
			tt.run(&importerFixture{&inspectorFixture{f, i}, in, func() *inspectorFixture {
				other := newFixture(t, open(t))
				return &inspectorFixture{other, other.store.(storage.Inspector)}
			}})
		})
	}
}

// An importerFixture is a fixture whose Store is an Importer.
type importerFixture struct {
	*inspectorFixture
	storage.Importer
	newOtherStore func() *inspectorFixture // opens another, empty Store
}

func (i *importerFixture) mustImport(dumps ...storage.OriginDump) {
	i.Helper()
	i.must(i.Import(i.Context(), dumps))
}

// dumpAll returns the contents of a Store, one dump for each origin.
func (i *inspectorFixture) dumpAll() (all []storage.OriginDump) {
	i.Helper()
	for _, o := range i.allOrigins() {
		p := storage.OriginDump{Origin: o.Origin, HostState: &o.HostState,
			HeldUntil: o.HeldUntil, Suspended: o.Suspended}
		for state := range storage.StateParked + 1 {
			i.must(i.OriginURLsInState(i.Context(), o.Origin, state, func(e storage.Entry, at time.Time) bool {
				p.URLs = append(p.URLs, storage.StoredEntry{Entry: e, State: state, NotBefore: at})
				return true
			}))
		}
		i.must(i.SeenURLFingerprints(i.Context(), o.Origin, func(f uint64) bool {
			p.SeenURLFingerprints = append(p.SeenURLFingerprints, f)
			return true
		}))
		slices.Sort(p.SeenURLFingerprints)
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b storage.OriginDump) int {
		return strings.Compare(a.Origin.String(), b.Origin.String())
	})
	return all
}

var importTests = []struct {
	name string
	run  func(*importerFixture)
}{
	{"Import takes over everything that an Inspector returns", func(i *importerFixture) {
		from := i.newOtherStore()
		addEntryInEveryState(from)
		want, counts := from.dumpAll(), from.mustGetCounts()
		for range 2 { // the second Import changes nothing
			i.mustImport(dumpsWithoutRobotsHops(want)...)
			i.mustImport(robotsHopsMissingInStore(i.inspectorFixture, want)...)
			if diff := cmp.Diff(want, i.dumpAll(), entryCmpOptions, cmp.Comparer(equalHostStates),
				cmp.Comparer(time.Time.Equal)); diff != "" {
				i.Fatalf("contents of the source (-) and of the import (+):\n%s", diff)
			}
			got := i.mustGetCounts()
			got.DueHosts, counts.DueHosts = 0, 0 // the two Stores were given different times
			if diff := cmp.Diff(counts, got); diff != "" {
				i.Fatalf("counts of the source (-) and of the import (+):\n%s", diff)
			}
		}
	}},
	{"imported URLs are leased as the source would lease them", func(i *importerFixture) {
		from := i.newOtherStore()
		addEntryInEveryState(from)
		i.mustImport(from.dumpAll()...)
		for s := 20.0; s < 400; s += 10 { // the source was called at 20 s before
			want, got := sortLeasesByURL(from.mustLeaseUpTo(at(s), 10)), sortLeasesByURL(i.mustLeaseUpTo(at(s), 10))
			if len(want) != len(got) {
				i.Fatalf("at %g s: %d leases, want %d", s, len(got), len(want))
			}
			for k := range got {
				if diff := cmp.Diff(want[k].Entry, got[k].Entry, entryCmpOptions); diff != "" {
					i.Fatalf("at %g s, of the source (-) and of the import (+):\n%s", s, diff)
				}
				from.ackVisit(want[k], at(s+15))
				i.ackVisit(got[k], at(s+15))
			}
		}
	}},
	{"imported fingerprints are in the seen set", func(i *importerFixture) {
		u := mustURL("https://a.example/was")
		var many []uint64
		for n := range uint64(3000) {
			many = append(many, n*0x9e3779b97f4a7c15)
		}
		i.mustImport(storage.OriginDump{Origin: u.Origin(), SeenURLFingerprints: append(many, storage.Fingerprint(u))})
		i.mustImport(storage.OriginDump{Origin: u.Origin(), SeenURLFingerprints: many})
		i.mustAddExactly(0, linkEntry(u.String()))
		i.mustAddExactly(1, linkEntry("https://a.example/is"))
		if c := i.mustGetCounts(); c.SeenURLs != 3002 || c.QueuedURLs != 1 {
			i.Errorf("counts %+v, want 3002 seen and 1 queued", c)
		}
		fates, err := i.store.Add(i.Context(), linkEntries("https://a.example/more"), 3002)
		i.must(err)
		if fates[0] != storage.OverLimit {
			i.Errorf("outcome %d: imported fingerprints do not count", fates[0])
		}
	}},
	{"Import never moves Due of a host back", func(i *importerFixture) {
		o := mustOrigin("https://a.example")
		i.mustImport(storage.OriginDump{Origin: o,
			HostState: &storage.HostState{Due: at(50), LostVisitDelay: time.Second},
			URLs:      []storage.StoredEntry{{Entry: linkEntry("https://a.example/")}}})
		i.mustImport(storage.OriginDump{Origin: o,
			HostState: &storage.HostState{Due: at(20), LostVisitDelay: 2 * time.Second}})
		i.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(50)})
		if l := i.fixture.mustLeaseURL(at(50), "https://a.example/"); l.HostState.LostVisitDelay != 2*time.Second {
			i.Errorf("LostVisitDelay %v, want the one of the last dump", l.HostState.LostVisitDelay)
		}
	}},
	{"URLs that the Store has stay, and go first", func(i *importerFixture) {
		i.mustAddExactly(1, linkEntry("https://a.example/1"))
		i.mustImport(storage.OriginDump{Origin: mustOrigin("https://a.example"), URLs: []storage.StoredEntry{
			{Entry: linkEntry("https://a.example/1"), State: storage.StateParked},
			{Entry: linkEntry("https://a.example/2")}}})
		i.wantOrder(at(0), "https://a.example/1", "https://a.example/2")
	}},
	{"imported pages can be rescheduled and unparked", func(i *importerFixture) {
		rested, o := linkEntry("https://a.example/r"), mustOrigin("https://a.example")
		rested.VisitHistorySummary = newVisitHistorySummary(at(-10))
		i.mustImport(storage.OriginDump{Origin: o,
			URLs: []storage.StoredEntry{{Entry: rested, State: storage.StateAwaitingRevisit, NotBefore: at(1000)},
				{Entry: linkEntry("https://a.example/p"), State: storage.StateParked}}})
		i.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: at(1000)})
		n, err := i.store.RescheduleByLastmod(i.Context(), at(1),
			[]storage.SitemapLastmod{{URL: rested.URL, Modified: at(0)}})
		i.must(err)
		m, err := i.store.UnparkMatchingURLs(i.Context(), o, func(storage.Entry) bool { return true })
		i.must(err)
		if n != 1 || m != 1 {
			i.Errorf("%d rescheduled and %d unparked, want 1 each", n, m)
		}
		i.wantOrder(at(1), "https://a.example/r", "https://a.example/p")
	}},
	{"Import refuses the whole call if one dump is invalid", func(i *importerFixture) {
		o, good := mustOrigin("https://a.example"), linkEntry("https://a.example/")
		for name, p := range map[string]storage.OriginDump{
			"no origin":      {URLs: []storage.StoredEntry{{Entry: good}}},
			"another origin": {Origin: mustOrigin("https://b.example"), URLs: []storage.StoredEntry{{Entry: good}}},
			"no state":       {Origin: o, URLs: []storage.StoredEntry{{Entry: good, State: storage.StateParked + 1}}},
			"bad entry": {Origin: o,
				URLs: []storage.StoredEntry{{Entry: entryOfClass(storage.NumClasses, "https://a.example/x")}}},
			"redirect of a robots.txt that awaits a revisit": {Origin: o,
				URLs: []storage.StoredEntry{{Entry: robotsRedirectEntry("https://a.example/r", "https://b.example"),
					State: storage.StateAwaitingRevisit}}},
			"long statistics": {Origin: o,
				HostState: &storage.HostState{EncodedStats: make([]byte, storage.MaxStatsBytes+1)}},
		} {
			if err := i.Import(i.Context(),
				[]storage.OriginDump{{Origin: o, URLs: []storage.StoredEntry{{Entry: good}}}, p}); err == nil {
				i.Errorf("%s: no error", name)
			}
		}
		if c := i.mustGetCounts(); c != (storage.Counts{}) {
			i.Errorf("counts %+v, want none", c)
		}
	}},
	{"a closed Store is refused", func(i *importerFixture) {
		i.must(i.store.Close())
		if err := i.Import(i.Context(), []storage.OriginDump{{Origin: mustOrigin("https://a.example")}}); err == nil {
			i.Error("no error")
		}
	}},
}

// sortLeasesByURL sorts leases by URL, since hosts that are due equally long may go in either order.
func sortLeasesByURL(leases []storage.Lease) []storage.Lease {
	slices.SortFunc(leases, func(a, b storage.Lease) int { return strings.Compare(a.URL.String(), b.URL.String()) })
	return leases
}

// addEntryInEveryState adds entries to a Store and brings them into every state that there is.
func addEntryInEveryState(i *inspectorFixture) {
	full := entryWithRank(7, "https://a.example/full?q")
	full.Depth, full.Referrer, full.CallbackData, full.FailedAttempts, full.Redirects = 3,
		"https://b.example/", []byte("\x00c"), 2, 1
	sent := newPOSTEntry("https://a.example/form", "x=1")
	// Outcomes of five visits; the sixth URL stays queued.
	i.mustAddExactly(6, linkEntries("https://a.example/done", "https://a.example/later", "https://a.example/rest",
		"https://a.example/park", "https://a.example/later2", "https://a.example/1")...)
	for _, end := range []storage.Ack{
		{Outcome: storage.Done}, {Outcome: storage.RetryAt, NotBefore: at(70)},
		{Outcome: storage.RevisitAt, NotBefore: at(90)}, {Outcome: storage.Park},
		{Outcome: storage.RetryAt, NotBefore: at(30),
			HostState: &storage.HostState{Due: at(20), LostVisitDelay: 5 * time.Second, Slots: 1,
				ConsecutiveFailures: 2, EncodedStats: []byte("\xffmemo")}},
	} {
		end.Lease = i.mustLeaseUpTo(at(0), 1)[0]
		end.Lease.VisitHistorySummary = newVisitHistorySummary(at(0))
		i.mustAck(end)
	}
	// Entries of several classes and kinds, on two origins of one host.
	i.mustAddExactly(2, full, sent)
	i.mustAddExactly(1, entryOfClass(storage.ClassLate, "https://a.example/late"))
	i.mustAddExactly(1, entryOfClass(storage.ClassEarly, "https://a.example/early"))
	i.mustAddExactly(2, linkEntry("http://a.example/plain"),
		robotsRedirectEntry("https://a.example/robots2", "https://a.example"))
	// Holds, one of them of an origin without URLs, and redirects of a robots.txt.
	i.mustHoldOrigin("http://a.example", at(200), true)
	i.mustHoldOrigin("https://c.example", at(100), false)
	l := i.fixture.mustLeaseURL(at(20), "https://a.example/robots2")
	i.mustAck(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(40)})
	i.mustAddExactly(2, linkEntry("https://b.example/"),
		robotsRedirectEntry("https://b.example/robots2", "https://a.example"))
}

// filterDumpURLs returns the dumps with only the URLs for which keep returns true.
func filterDumpURLs(dumps []storage.OriginDump, keep func(*storage.StoredEntry) bool) (filtered []storage.OriginDump) {
	for _, p := range dumps {
		p.URLs = slices.DeleteFunc(slices.Clone(p.URLs), func(k storage.StoredEntry) bool { return !keep(&k) })
		filtered = append(filtered, p)
	}
	return filtered
}

func dumpsWithoutRobotsHops(dumps []storage.OriginDump) []storage.OriginDump {
	return filterDumpURLs(dumps, func(k *storage.StoredEntry) bool { return k.RobotsFor.IsZero() })
}

// robotsHopsMissingInStore returns the dumps with only those redirects of a robots.txt that the Store does
// not have.
func robotsHopsMissingInStore(i *inspectorFixture, dumps []storage.OriginDump) []storage.OriginDump {
	have := map[[2]decorum.Origin]bool{}
	for _, p := range i.dumpAll() {
		for _, k := range p.URLs {
			have[[2]decorum.Origin{p.Origin, k.RobotsFor}] = !k.RobotsFor.IsZero()
		}
	}
	return filterDumpURLs(dumps, func(k *storage.StoredEntry) bool {
		return !k.RobotsFor.IsZero() && !have[[2]decorum.Origin{k.URL.Origin(), k.RobotsFor}]
	})
}
