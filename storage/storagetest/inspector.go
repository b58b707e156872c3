package storagetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// An inspectorFixture is a fixture whose Store is an Inspector.
type inspectorFixture struct {
	*fixture
	storage.Inspector
}

// runInspectorTests tests the Stores that open returns, if they are Inspectors.
func runInspectorTests(t *testing.T, open func(t testing.TB) storage.Store) {
	for _, tt := range inspectTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, open(t))
			i, ok := f.store.(storage.Inspector)
			if !ok {
				t.Skip("the Store does not implement storage.Inspector")
			}
			tt.run(&inspectorFixture{f, i})
		})
	}
}

// allOrigins returns the infos of all origins, by name, and checks that OriginNames lists the same
// origins.
func (i *inspectorFixture) allOrigins() map[string]storage.OriginInfo {
	i.Helper()
	all := make(map[string]storage.OriginInfo)
	i.must(i.Origins(i.Context(), func(o storage.OriginInfo) bool {
		if _, twice := all[o.Origin.String()]; twice {
			i.Errorf("Origins yields %v twice", o.Origin)
		}
		all[o.Origin.String()] = o
		return true
	}))
	// An OriginLister must list the same origins.
	lister, ok := i.Inspector.(storage.OriginLister)
	if !ok {
		return all
	}
	names := 0
	i.must(lister.OriginNames(i.Context(), func(o decorum.Origin) bool {
		if _, known := all[o.String()]; !known {
			i.Errorf("OriginNames lists %v, Origins does not", o)
		}
		names++
		return true
	}))
	if names != len(all) {
		i.Errorf("OriginNames lists %d origins, Origins %d", names, len(all))
	}
	return all
}

// listURLs returns the paths of the URLs of an origin in a state, each with its time in seconds, if it
// has one.
func (i *inspectorFixture) listURLs(o string, state storage.EntryState) (urls []string) {
	i.Helper()
	i.must(i.OriginURLsInState(i.Context(), mustOrigin(o), state, func(e storage.Entry, notBefore time.Time) bool {
		listed := e.URL.PathAndQuery()
		if !notBefore.IsZero() {
			listed += fmt.Sprintf(" at %g", notBefore.Sub(startTime).Seconds())
		}
		urls = append(urls, listed)
		return true
	}))
	return urls
}

// wantURLs checks the URLs of an origin in a state, in the form of listURLs.
func (i *inspectorFixture) wantURLs(o string, state storage.EntryState, want ...string) {
	i.Helper()
	if got := i.listURLs(o, state); !slices.Equal(got, want) {
		i.Errorf("state %d of %s: %q, want %q", state, o, got, want)
	}
}

var inspectTests = []struct {
	name string
	run  func(*inspectorFixture)
}{
	{"Origins yields every origin that the Store was given", func(i *inspectorFixture) {
		if got := i.allOrigins(); len(got) > 0 {
			i.Errorf("an empty Store yields %v", got)
		}
		i.mustAddExactly(2, linkEntries("https://a.example/", "http://a.example/")...)
		i.mustHoldOrigin("https://held.example", at(10), true)
		i.must(i.store.SetNote(i.Context(), mustOrigin("https://noted.example"), "key", []byte("v")))
		for _, l := range i.mustLeaseUpTo(at(0), 10) {
			i.mustAck(storage.Ack{Lease: l})
		}
		all := i.allOrigins()
		for _, o := range []string{"https://a.example", "http://a.example",
			"https://held.example", "https://noted.example"} {
			if _, ok := all[o]; !ok {
				i.Errorf("%s is missing", o)
			}
		}
		if len(all) != 4 {
			i.Errorf("%d origins, want 4", len(all))
		}
	}},
	{"Origin describes an origin", testOriginInfo},
	{"Origin returns false for an origin that the Store was never given", func(i *inspectorFixture) {
		i.mustAddExactly(1, linkEntry("https://a.example/"))
		info, ok, err := i.Origin(i.Context(), mustOrigin("https://b.example"))
		i.must(err)
		if ok {
			i.Errorf("Origin returned %+v", info)
		}
		i.wantURLs("https://b.example", storage.StateQueued)
	}},
	{"OriginURLsInState yields queued URLs in the order of their leases, with leased ones", func(i *inspectorFixture) {
		i.mustAddExactly(1, entryOfClass(storage.ClassEarly, "https://a.example/out"))
		i.mustLeaseURL(at(0), "https://a.example/out")
		i.mustAddExactly(4, entryWithRank(5, "https://a.example/u5"), entryWithRank(4, "https://a.example/u4"),
			entryOfClass(storage.ClassLate, "https://a.example/l"),
			entryOfClass(storage.ClassEarly, "https://a.example/e"))
		i.mustAddExactly(1, linkEntry("https://b.example/other"))
		i.mustAddExactly(1, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"))
		got := i.listURLs("https://a.example", storage.StateQueued)
		i.wantURLs("https://a.example", storage.StateAwaitingRevisit)
		at := slices.Index(got, "/out")
		if want := []string{"/r.txt", "/e", "/u4", "/u5", "/l"}; at < 0 ||
			!slices.Equal(slices.Delete(got, at, at+1), want) {
			i.Errorf("got %q, want %q and the leased one", got, want)
		}
	}},
	{"OriginURLsInState separates queued, awaiting and parked URLs", func(i *inspectorFixture) {
		i.mustAddExactly(5, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3",
			"https://a.example/4", "https://a.example/5")...)
		i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(0), "https://a.example/1"),
			Outcome: storage.RetryAt, NotBefore: at(30)})
		i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(0), "https://a.example/2"),
			Outcome: storage.RevisitAt, NotBefore: at(50)})
		i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(0), "https://a.example/3"),
			Outcome: storage.RevisitAt, NotBefore: at(40)})
		i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(0), "https://a.example/4"), Outcome: storage.Park})
		i.wantURLs("https://a.example", storage.StateQueued, "/1 at 30", "/5")
		i.wantURLs("https://a.example", storage.StateAwaitingRevisit, "/3 at 40", "/2 at 50")
		i.wantURLs("https://a.example", storage.StateParked, "/4")
		i.must(i.store.Flush(i.Context()))
		i.wantURLs("https://a.example", storage.StateQueued, "/1 at 30", "/5")
		i.wantURLs("https://a.example", storage.StateAwaitingRevisit, "/3 at 40", "/2 at 50")
		i.wantURLs("https://a.example", storage.StateParked, "/4")
	}},
	{"OriginURLsInState yields every field of an entry", func(i *inspectorFixture) {
		want := entryWithRank(7, "https://a.example/?q")
		want.Depth, want.Referrer, want.CallbackData, want.VisitHistorySummary = 3, "https://b.example/", []byte("c"),
			newVisitHistorySummary(at(-1))
		i.mustAddExactly(1, want)
		i.must(i.OriginURLsInState(i.Context(), mustOrigin("https://a.example"), storage.StateQueued,
			func(e storage.Entry, _ time.Time) bool {
				if diff := cmp.Diff(want, e, entryCmpOptions); diff != "" {
					i.Errorf("entry (-added +yielded):\n%s", diff)
				}
				return true
			}))
	}},
	{"OriginURLsInState yields many URLs", func(i *inspectorFixture) {
		const many = 3000
		want := make([]string, many)
		for n := range want {
			want[n] = fmt.Sprintf("/%d", n)
			i.mustAddExactly(1, linkEntry("https://a.example"+want[n]))
			if n == many/2 {
				i.must(i.store.Flush(i.Context()))
			}
		}
		i.wantURLs("https://a.example", storage.StateQueued, want...)
	}},
	{"inspecting changes nothing", func(i *inspectorFixture) {
		i.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(0), "https://a.example/1"), Outcome: storage.Park})
		before := i.mustGetCounts()
		for in := range storage.StateParked + 1 {
			i.listURLs("https://a.example", in)
		}
		i.allOrigins()
		_, err := i.HasSeen(i.Context(), mustURL("https://a.example/9"))
		i.must(err)
		if diff := cmp.Diff(before, i.mustGetCounts()); diff != "" {
			i.Errorf("counts:\n%s", diff)
		}
		i.wantOrder(at(0), "https://a.example/2", "https://a.example/3")
		i.mustAddExactly(1, linkEntry("https://a.example/9"))
	}},
	{"a call ends when yield returns false", func(i *inspectorFixture) {
		i.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://b.example/1")...)
		i.must(i.store.SetNote(i.Context(), mustOrigin("https://a.example"), "1", []byte("v")))
		i.must(i.store.SetNote(i.Context(), mustOrigin("https://a.example"), "2", []byte("v")))
		ctx, a := i.Context(), mustOrigin("https://a.example")
		for name, call := range map[string]func(stop func() bool) error{
			"Origins": func(stop func() bool) error {
				return i.Origins(ctx, func(storage.OriginInfo) bool { return stop() })
			},
			"OriginURLsInState": func(stop func() bool) error {
				return i.OriginURLsInState(ctx, a, storage.StateQueued, func(storage.Entry, time.Time) bool {
					return stop()
				})
			},
			"SeenURLFingerprints": func(stop func() bool) error {
				return i.SeenURLFingerprints(ctx, a, func(uint64) bool { return stop() })
			},
			"OriginNotes": func(stop func() bool) error {
				return i.OriginNotes(ctx, a, func(string, []byte) bool { return stop() })
			},
		} {
			calls := 0
			i.must(call(func() bool { calls++; return false }))
			if calls != 1 {
				i.Errorf("%s called yield %d times, want 1", name, calls)
			}
		}
	}},
	{"HasSeen reports whether the seen set has a URL", func(i *inspectorFixture) {
		i.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		i.mustAddExactly(1, robotsRedirectEntry("https://a.example/hop", "https://a.example"))
		for _, l := range i.mustLeaseUpTo(at(0), 1) {
			i.mustAck(storage.Ack{Lease: l})
		}
		i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(0), "https://a.example/1")})
		for u, want := range map[string]bool{
			"https://a.example/1": true, "https://a.example/2": true, "https://a.example/hop": false,
			"http://a.example/1": false, "https://b.example/1": false,
		} {
			got, err := i.HasSeen(i.Context(), mustURL(u))
			i.must(err)
			if got != want {
				i.Errorf("%s: %t, want %t", u, got, want)
			}
		}
	}},
	{"SeenURLFingerprints yields the fingerprints of the seen set", func(i *inspectorFixture) {
		want := map[string]string{}
		for n := range 2500 {
			e := linkEntry(fmt.Sprintf("https://a.example/%d?q=%d", n, n))
			want[fmt.Sprint(storage.Fingerprint(e.URL))] = e.URL.String()
			i.mustAddExactly(1, e)
		}
		i.mustAddExactly(1, linkEntry("https://b.example/"))
		i.mustAck(storage.Ack{Lease: i.mustLeaseUpTo(at(0), 1)[0]}) // visited URLs stay in the seen set
		i.must(i.SeenURLFingerprints(i.Context(), mustOrigin("https://a.example"), func(f uint64) bool {
			if _, ok := want[fmt.Sprint(f)]; !ok {
				i.Errorf("fingerprint %d belongs to no URL, or was yielded twice", f)
			}
			delete(want, fmt.Sprint(f))
			return true
		}))
		for f, u := range want {
			i.Errorf("fingerprint %s of %s is missing", f, u)
		}
	}},
	{"OriginNotes yields the notes of SetNote", func(i *inspectorFixture) {
		a := mustOrigin("https://a.example")
		for key, value := range map[string]string{"": "empty", "k": "1", "kk": "2", "gone": "3"} {
			i.must(i.store.SetNote(i.Context(), a, key, []byte(value)))
		}
		i.must(i.store.SetNote(i.Context(), mustOrigin("http://a.example"), "other", []byte("x")))
		i.must(i.store.SetNote(i.Context(), a, "gone", nil))
		got := map[string]string{}
		i.must(i.OriginNotes(i.Context(), a, func(key string, value []byte) bool {
			got[key] = string(value)
			return true
		}))
		if diff := cmp.Diff(map[string]string{"": "empty", "k": "1", "kk": "2"}, got); diff != "" {
			i.Errorf("notes (-want +got):\n%s", diff)
		}
	}},
	{"the zero Origin has notes, and Origins omits it", func(i *inspectorFixture) {
		i.must(i.store.SetNote(i.Context(), decorum.Origin{}, "own", []byte("v")))
		if got := i.allOrigins(); len(got) > 0 {
			i.Errorf("Origins yields %v", got)
		}
		keys := ""
		i.must(i.OriginNotes(i.Context(), decorum.Origin{}, func(key string, value []byte) bool {
			keys += key + "=" + string(value) + " "
			return true
		}))
		if keys != "own=v " {
			i.Errorf("notes %q", keys)
		}
	}},
	{"calls with a cancelled context and of a closed Store return an error", func(i *inspectorFixture) {
		i.mustAddExactly(1, linkEntry("https://a.example/"))
		ctx, cancel := context.WithCancel(i.Context())
		cancel()
		if err := i.Origins(ctx, func(storage.OriginInfo) bool { return true }); err == nil {
			i.Error("a cancelled call returned no error")
		}
		i.must(i.store.Close())
		errs := map[string]error{}
		a := mustOrigin("https://a.example")
		errs["Origins"] = i.Origins(i.Context(), func(storage.OriginInfo) bool { return true })
		_, _, errs["Origin"] = i.Origin(i.Context(), a)
		errs["OriginURLsInState"] = i.OriginURLsInState(i.Context(), a, storage.StateQueued,
			func(storage.Entry, time.Time) bool { return true })
		_, errs["HasSeen"] = i.HasSeen(i.Context(), mustURL("https://a.example/"))
		errs["SeenURLFingerprints"] = i.SeenURLFingerprints(i.Context(), a, func(uint64) bool { return true })
		errs["OriginNotes"] = i.OriginNotes(i.Context(), a, func(string, []byte) bool { return true })
		for name, err := range errs {
			if err == nil || !strings.Contains(err.Error(), storage.ErrClosed.Error()) {
				i.Errorf("%s: %v, want %v", name, err, storage.ErrClosed)
			}
		}
	}},
}

// testOriginInfo checks the OriginInfo of two origins of one host through leases, outcomes and a hold.
func testOriginInfo(i *inspectorFixture) {
	want := func(now time.Time, want storage.OriginInfo) {
		i.Helper()
		got, ok, err := i.Origin(i.Context(), want.Origin)
		i.must(err)
		if !ok {
			i.Fatalf("the Store does not have %v", want.Origin)
		}
		for _, info := range []storage.OriginInfo{got, i.allOrigins()[want.Origin.String()]} {
			if !want.NextDue.IsZero() && !want.NextDue.After(now) && !info.NextDue.After(now) {
				info.NextDue = want.NextDue // any time in the past says that it can be leased now
			}
			if diff := cmp.Diff(want, info, entryCmpOptions, cmp.Comparer(equalHostStates),
				cmp.Comparer(time.Time.Equal)); diff != "" {
				i.Fatalf("origin (-want +got):\n%s", diff)
			}
		}
	}
	a, b := mustOrigin("https://a.example"), mustOrigin("http://a.example")
	i.mustHoldOrigin("https://a.example", at(0), false)
	i.mustAddExactly(5, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3",
		"https://a.example/4", "https://a.example/5")...)
	l := i.mustLeaseURL(at(0), "https://a.example/1")
	want(at(0), storage.OriginInfo{Origin: a, HeldUntil: at(0), QueuedURLs: 4, LeasedURLs: 1,
		SeenURLs: 5, NextDue: at(0)})
	host := storage.HostState{Due: at(10), LostVisitDelay: time.Second, ConsecutiveFailures: 2,
		EncodedStats: []byte("memo")}
	i.mustAck(storage.Ack{Lease: l, Outcome: storage.RevisitAt, NotBefore: at(99), HostState: &host})
	i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(10), "https://a.example/2"),
		Outcome: storage.RetryAt, NotBefore: at(70)})
	i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(10), "https://a.example/3"), Outcome: storage.Park})
	i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(10), "https://a.example/4"), Outcome: storage.Done})
	want(at(10), storage.OriginInfo{Origin: a, HostState: host, HeldUntil: at(0), QueuedURLs: 2, AwaitingRevisit: 1,
		ParkedURLs: 1, SeenURLs: 5, NextDue: at(10)})
	i.mustHoldOrigin("https://a.example", at(60), true)
	want(at(10), storage.OriginInfo{Origin: a, HostState: host, HeldUntil: at(60), Suspended: true, QueuedURLs: 2,
		AwaitingRevisit: 1, ParkedURLs: 1, SeenURLs: 5, NextDue: at(60)})
	i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(60), "https://a.example/5")})
	want(at(60), storage.OriginInfo{Origin: a, HostState: host, HeldUntil: at(60), Suspended: true, QueuedURLs: 1,
		AwaitingRevisit: 1, ParkedURLs: 1, SeenURLs: 5, NextDue: at(70)})
	i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(70), "https://a.example/2")})
	want(at(70), storage.OriginInfo{Origin: a, HostState: host, HeldUntil: at(60), Suspended: true, AwaitingRevisit: 1,
		ParkedURLs: 1, SeenURLs: 5, NextDue: at(99)})
	i.mustAck(storage.Ack{Lease: i.mustLeaseURL(at(99), "https://a.example/1")})
	want(at(99), storage.OriginInfo{Origin: a, HostState: host, HeldUntil: at(60), Suspended: true,
		ParkedURLs: 1, SeenURLs: 5})
	i.mustAddExactly(1, linkEntry("http://a.example/"))
	// Both origins share the host's clock.
	want(at(99), storage.OriginInfo{Origin: b, HostState: host, QueuedURLs: 1, SeenURLs: 1, NextDue: at(10)})
}
