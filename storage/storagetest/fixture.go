package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// startTime is when the suite's clock starts.
var startTime = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns the time s seconds after startTime.
func at(s float64) time.Time { return startTime.Add(time.Duration(s * float64(time.Second))) }

// leaseTTL is how long leases last, unless a test says otherwise.
const leaseTTL = time.Minute

// A fixture wraps the calls of a Store so that an unexpected result ends the test, and a test reads as a
// timeline. Methods that begin with must return the result of a call; those that begin with want check
// it.
type fixture struct {
	testing.TB
	store storage.Store
}

// newFixture returns a fixture, and closes the store at the end of the test if the test has not.
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

// mustAddExactly adds the entries. Exactly want of them must be queued.
func (f *fixture) mustAddExactly(want int, entries ...storage.Entry) {
	f.Helper()
	results, err := f.store.Add(f.Context(), entries, 0)
	f.must(err)
	if added := storage.CountAdded(results); added != want {
		f.Fatalf("Add queued %d entries, want %d", added, want)
	}
}

// mustLeaseUpTo returns at most max leases.
func (f *fixture) mustLeaseUpTo(now time.Time, max int) []storage.Lease {
	f.Helper()
	leases, _, err := f.store.Lease(f.Context(), now, leaseTTL, max)
	f.must(err)
	if len(leases) > max {
		f.Fatalf("Lease returned %d leases, want at most %d", len(leases), max)
	}
	return leases
}

// mustLeaseURL leases one URL, which must be want.
func (f *fixture) mustLeaseURL(now time.Time, want string) storage.Lease {
	f.Helper()
	leases := f.mustLeaseUpTo(now, 1)
	if len(leases) == 0 {
		f.Fatalf("at %v: no lease, want %s", now.Sub(startTime), want)
	}
	if got := leases[0].URL.String(); got != want {
		f.Fatalf("at %v: leased %s, want %s", now.Sub(startTime), got, want)
	}
	return leases[0]
}

// wantNoLease checks that Lease returns no lease, and returns its Wait.
func (f *fixture) wantNoLease(now time.Time) storage.Wait {
	f.Helper()
	leases, wait, err := f.store.Lease(f.Context(), now, leaseTTL, 10)
	f.must(err)
	if len(leases) > 0 {
		f.Fatalf("at %v: leased %v, want none", now.Sub(startTime), leases[0].URL)
	}
	return wait
}

// wantWait checks that Lease returns no lease and the given kind and Until.
func (f *fixture) wantWait(now time.Time, want storage.Wait) {
	f.Helper()
	if got := f.wantNoLease(now); got.RemainingWorkKind != want.RemainingWorkKind || !got.Until.Equal(want.Until) {
		f.Fatalf("at %v: remaining %d until %v, want %d until %v", now.Sub(startTime), got.RemainingWorkKind, got.Until,
			want.RemainingWorkKind, want.Until)
	}
}

// wantOrder leases and acks all URLs that are due at now, which must be these in this order.
func (f *fixture) wantOrder(now time.Time, want ...string) {
	f.Helper()
	for _, url := range want {
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(now, url)})
	}
	f.wantNoLease(now)
}

func (f *fixture) mustAck(acks ...storage.Ack) {
	f.Helper()
	f.must(f.store.Ack(f.Context(), acks))
}

// ackVisit ends a lease as a visit does, after which the host is due at the given time.
func (f *fixture) ackVisit(l storage.Lease, due time.Time) {
	f.Helper()
	f.mustAck(storage.Ack{Lease: l, HostState: &storage.HostState{Due: due}})
}

func (f *fixture) mustHoldOrigin(o string, until time.Time, suspended bool) {
	f.Helper()
	f.must(f.store.Hold(f.Context(), mustOrigin(o), until, suspended))
}

func (f *fixture) mustGetCounts() storage.Counts {
	f.Helper()
	c, err := f.store.(storage.Inspector).Counts(f.Context())
	f.must(err)
	return c
}

// wantStale checks that err wraps ErrStaleLease.
func (f *fixture) wantStale(err error) {
	f.Helper()
	if !errors.Is(err, storage.ErrStaleLease) {
		f.Fatalf("error %v, want ErrStaleLease", err)
	}
}

// mustURL parses a URL of the suite, which must be in canonical form.
func mustURL(s string) decorum.URL {
	u, err := decorum.ParseURL(s)
	if err != nil || u.String() != s {
		panic("storagetest: not canonical: " + s)
	}
	return u
}

func mustOrigin(s string) decorum.Origin { return mustURL(s + "/").Origin() }

// linkEntry returns an entry as of a link on a page.
func linkEntry(s string) storage.Entry {
	return storage.Entry{URL: mustURL(s), Source: storage.SourceLink, PriorityClass: storage.ClassNormal}
}

func linkEntries(urls ...string) []storage.Entry {
	var entries []storage.Entry
	for _, u := range urls {
		entries = append(entries, linkEntry(u))
	}
	return entries
}

// entryOfClass returns an entry with a priority class.
func entryOfClass(class storage.PriorityClass, s string) storage.Entry {
	return storage.Entry{URL: mustURL(s), PriorityClass: class}
}

// robotsRedirectEntry returns an entry for a URL to which the robots.txt of origin redirected.
func robotsRedirectEntry(s, origin string) storage.Entry {
	return storage.Entry{URL: mustURL(s), Source: storage.SourcePrerequisite, RobotsFor: mustOrigin(origin)}
}
