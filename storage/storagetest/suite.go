package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Run tests that the Stores open returns keep the contract. Every test asks
// for an empty Store of its own, and closes it.
func Run(t *testing.T, open func(t testing.TB) storage.Store) {
	for _, group := range [][]test{addTests, orderTests, rankTests, clockTests, leaseTests, nextTests,
		ackTests, requestTests, restTests, recallTests, holdTests, keepTests, hostTests} {
		for _, tt := range group {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.run(newFixture(t, open(t)))
			})
		}
	}
	t.Run("inspect", func(t *testing.T) { runInspector(t, open) })
	t.Run("import", func(t *testing.T) { runImporter(t, open) })
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		testModel(t, func() storage.Store { return open(t) }, nil)
	})
	t.Run("concurrent", func(t *testing.T) {
		t.Parallel()
		testConcurrent(newFixture(t, open(t)))
	})
}

// A test pins the sentence of the contract that is its name.
type test struct {
	name string
	run  func(*fixture)
}

// start is when the suite's time begins.
var start = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the time s seconds after start.
func at(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }

const ttl = time.Minute // of leases, unless a test is about it

// A fixture is a Store whose errors end the test, so that a test reads as a timeline.
type fixture struct {
	testing.TB
	store storage.Store
}

func newFixture(t testing.TB, store storage.Store) *fixture {
	t.Cleanup(func() {
		if err := store.Close(); err != nil && !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return &fixture{TB: t, store: store}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// add adds and wants as many to be queued.
func (f *fixture) add(want int, entries ...storage.Entry) {
	f.Helper()
	fates, err := f.store.Add(f.Context(), entries, 0)
	f.must(err)
	if added := storage.CountAdded(fates); added != want {
		f.Fatalf("Add: %d were queued, want %d", added, want)
	}
}

// lease takes at most max leases.
func (f *fixture) lease(now time.Time, max int) []storage.Lease {
	f.Helper()
	leases, _, err := f.store.Lease(f.Context(), now, ttl, max)
	f.must(err)
	if len(leases) > max {
		f.Fatalf("Lease gave %d leases, %d were asked for", len(leases), max)
	}
	return leases
}

// take leases one URL, which must be want.
func (f *fixture) take(now time.Time, want string) storage.Lease {
	f.Helper()
	leases := f.lease(now, 1)
	if len(leases) == 0 {
		f.Fatalf("at %v: no lease, want %s", now.Sub(start), want)
	}
	if got := leases[0].URL.String(); got != want {
		f.Fatalf("at %v: leased %s, want %s", now.Sub(start), got, want)
	}
	return leases[0]
}

// none wants no lease, and returns what is left.
func (f *fixture) none(now time.Time) storage.Wait {
	f.Helper()
	leases, next, err := f.store.Lease(f.Context(), now, ttl, 10)
	f.must(err)
	if len(leases) > 0 {
		f.Fatalf("at %v: leased %v, want none", now.Sub(start), leases[0].URL)
	}
	return next
}

// next wants no lease and what is left to be as given.
func (f *fixture) next(now time.Time, want storage.Wait) {
	f.Helper()
	if got := f.none(now); got.RemainingWork != want.RemainingWork || !got.Until.Equal(want.Until) {
		f.Fatalf("at %v: left %d at %v, want %d at %v", now.Sub(start), got.RemainingWork, got.Until, want.RemainingWork, want.Until)
	}
}

// drain leases and finishes all that is due at now, and wants it in this order.
func (f *fixture) drain(now time.Time, want ...string) {
	f.Helper()
	for _, url := range want {
		f.ack(storage.Ack{Lease: f.take(now, url)})
	}
	f.none(now)
}

func (f *fixture) ack(acks ...storage.Ack) {
	f.Helper()
	f.must(f.store.Ack(f.Context(), acks))
}

// visit ends a lease as a visit does after which the host is due at the given time.
func (f *fixture) visit(l storage.Lease, due time.Time) {
	f.Helper()
	f.ack(storage.Ack{Lease: l, Host: &storage.HostState{Due: due}})
}

func (f *fixture) hold(o string, until time.Time, dormant bool) {
	f.Helper()
	f.must(f.store.Hold(f.Context(), origin(o), until, dormant))
}

func (f *fixture) counts() storage.Counts {
	f.Helper()
	c, err := f.store.Counts(f.Context())
	f.must(err)
	return c
}

// stale wants err to wrap ErrStale.
func (f *fixture) stale(err error) {
	f.Helper()
	if !errors.Is(err, storage.ErrStaleLease) {
		f.Fatalf("error %v, want ErrStale", err)
	}
}

// url returns the URL; the suite's own are well-formed.
func url(s string) decorum.URL {
	u, err := decorum.ParseURL(s)
	if err != nil || u.String() != s {
		panic("storagetest: not canonical: " + s)
	}
	return u
}

func origin(s string) decorum.Origin { return url(s + "/").Origin() }

// page returns an entry as links make it.
func page(s string) storage.Entry {
	return storage.Entry{URL: url(s), Source: storage.SourceLink, Class: storage.ClassNormal}
}

func pages(urls ...string) []storage.Entry {
	var entries []storage.Entry
	for _, u := range urls {
		entries = append(entries, page(u))
	}
	return entries
}

// of returns an entry of the class.
func of(class storage.Class, s string) storage.Entry {
	return storage.Entry{URL: url(s), Class: class}
}

// hop returns a hop of a redirect of the robots.txt of an origin.
func hop(s, of string) storage.Entry {
	return storage.Entry{URL: url(s), Source: storage.SourcePrerequisite, RobotsFor: origin(of)}
}
