package storagetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

var parkAndNoteTests = []testCase{
	{"UnparkMatchingURLs queues the URLs for which shouldUnpark returns true, and no others", testUnpark},
	{"UnparkMatchingURLs of the zero Origin unparks URLs of all origins", testUnparkOfAllOrigins},
	{"unparked URLs are in the order of parking, behind their class", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		for _, u := range []string{"https://a.example/1", "https://a.example/2"} {
			f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), u), Outcome: storage.Park})
		}
		n, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(storage.Entry) bool {
			return true
		})
		f.must(err)
		if n != 2 {
			f.Errorf("unparked %d, want 2", n)
		}
		f.wantOrder(at(0), "https://a.example/3", "https://a.example/1", "https://a.example/2")
	}},
	{"UnparkMatchingURLs offers each of many parked URLs once", func(f *fixture) {
		const many = 2500
		for i := range many {
			f.mustAddExactly(1, linkEntry("https://a.example/"+strconv.Itoa(i)))
		}
		f.mustAck(storage.Ack{Lease: f.mustLeaseUpTo(at(0), 1)[0], Outcome: storage.Requeue,
			HostState: &storage.HostState{Slots: many}})
		var acks []storage.Ack
		for _, l := range f.mustLeaseUpTo(at(0), many) {
			acks = append(acks, storage.Ack{Lease: l, Outcome: storage.Park})
		}
		f.mustAck(acks...)
		f.must(f.store.Flush(f.Context()))
		offered := make(map[string]int)
		n, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(e storage.Entry) bool {
			offered[e.URL.PathAndQuery()]++
			return offered[e.URL.PathAndQuery()] == 1
		})
		f.must(err)
		if n != many || len(offered) != many {
			f.Errorf("unparked %d of %d", n, len(offered))
		}
		for path, times := range offered {
			if times != 1 {
				f.Fatalf("%s was offered %d times", path, times)
			}
		}
	}},
	{"UnparkMatchingURLs of an origin without parked URLs does nothing", func(f *fixture) {
		n, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(storage.Entry) bool {
			f.Error("shouldUnpark was called")
			return true
		})
		f.must(err)
		if n != 0 {
			f.Errorf("unparked %d", n)
		}
	}},
	{"notes are kept by origin and key", testNotes},
	{"counts", testCounts},
	{"a cancelled call does nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		for name, err := range callEveryMethod(ctx, f.store) {
			if !errors.Is(err, context.Canceled) {
				f.Errorf("%s: %v, want %v", name, err, context.Canceled)
			}
		}
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a closed store refuses every call", func(f *fixture) {
		f.must(f.store.Close())
		for name, err := range callEveryMethod(f.Context(), f.store) {
			if !errors.Is(err, storage.ErrClosed) {
				f.Errorf("%s: %v, want %v", name, err, storage.ErrClosed)
			}
		}
	}},
	{"Flush of an empty store", func(f *fixture) { f.must(f.store.Flush(f.Context())) }},
}

func testUnpark(f *fixture) {
	f.mustAddExactly(4, linkEntries("https://a.example/1", "https://a.example/2",
		"https://a.example/3", "https://b.example/")...)
	for range 4 {
		f.mustAck(storage.Ack{Lease: f.mustLeaseUpTo(at(0), 1)[0], Outcome: storage.Park})
	}
	var offered []string
	shouldUnpark := func(e storage.Entry) bool {
		offered = append(offered, e.URL.PathAndQuery())
		return e.URL.PathAndQuery() != "/2"
	}
	for i, want := range []struct {
		offered  []string
		unparked int
	}{{[]string{"/1", "/2", "/3"}, 2}, {[]string{"/2"}, 0}} {
		offered = nil
		n, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), shouldUnpark)
		f.must(err)
		if n != want.unparked || !slices.Equal(offered, want.offered) {
			f.Errorf("call %d: unparked %d of %v, want %d of %v", i, n, offered, want.unparked, want.offered)
		}
	}
	if c := f.mustGetCounts(); c.ParkedURLs != 2 || c.QueuedURLs != 2 {
		f.Errorf("counts %+v, want 2 parked, 2 queued", c)
	}
	f.mustAddExactly(0, linkEntries("https://a.example/1", "https://a.example/2")...) // they are still in the seen set
	f.wantOrder(at(1), "https://a.example/1", "https://a.example/3")
}

// testUnparkOfAllOrigins tests the zero Origin in a store that also has origins without parked URLs.
func testUnparkOfAllOrigins(f *fixture) {
	f.mustAddExactly(4, linkEntries("https://a.example/1", "https://a.example/2", "https://b.example/1",
		"https://b.example:8443/1")...)
	for range 4 {
		f.mustAck(storage.Ack{Lease: f.mustLeaseUpTo(at(0), 1)[0], Outcome: storage.Park})
	}
	f.mustAddExactly(1, linkEntry("https://c.example/1"))
	f.must(f.store.SetNote(f.Context(), decorum.Origin{}, "key", []byte("of the crawl")))
	shouldUnpark := func(e storage.Entry) bool { return e.URL.PathAndQuery() == "/1" }
	for call, want := range []int{3, 0} {
		n, err := f.store.UnparkMatchingURLs(f.Context(), decorum.Origin{}, shouldUnpark)
		f.must(err)
		if c := f.mustGetCounts(); n != want || c.ParkedURLs != 1 || c.QueuedURLs != 4 {
			f.Errorf("call %d: unparked %d, counts %+v, want %d, 1 parked, 4 queued", call, n, c, want)
		}
	}
}

func testNotes(f *fixture) {
	a, b := mustOrigin("https://a.example"), mustOrigin("http://a.example")
	note := func(o decorum.Origin, key string, want []byte) {
		f.Helper()
		got, err := f.store.ReadNote(f.Context(), o, key)
		f.must(err)
		if !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			f.Errorf("note %s of %v: %.40q, want %.40q", key, o, got, want)
		}
	}
	set := func(o decorum.Origin, key string, value []byte) {
		f.Helper()
		f.must(f.store.SetNote(f.Context(), o, key, value))
	}
	note(a, "robots", nil)
	value := []byte("value")
	set(a, "robots", value)
	copy(value, "other") // the store has its own copy
	set(a, "robots2", []byte("2"))
	set(b, "robots", []byte("b"))
	note(a, "robots", []byte("value"))
	note(a, "robots2", []byte("2"))
	note(b, "robots", []byte("b"))
	note(a, "", nil)
	got, err := f.store.ReadNote(f.Context(), a, "robots")
	f.must(err)
	copy(got, "OTHER") // the result is the caller's copy
	note(a, "robots", []byte("value"))
	set(a, "robots", []byte{})
	note(a, "robots", []byte{})
	set(a, "robots", nil)
	note(a, "robots", nil)
	set(a, "robots", nil) // a note that does not exist
	note(a, "robots2", []byte("2"))
	large := bytes.Repeat([]byte("note"), 1<<18)
	set(a, "large", large)
	f.must(f.store.Flush(f.Context()))
	note(a, "large", large)
	if f.store.SetNote(f.Context(), a, "large", make([]byte, storage.MaxNoteBytes+1)) == nil {
		f.Error("SetNote accepted a note beyond MaxNoteBytes")
	}
	note(a, "large", large)
	f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingNone})
}

func testCounts(f *fixture) {
	want := func(want storage.Counts) {
		f.Helper()
		if got := f.mustGetCounts(); got != want {
			f.Fatalf("counts %+v, want %+v", got, want)
		}
	}
	want(storage.Counts{})
	f.wantNoLease(at(0))
	f.mustAddExactly(4, linkEntries("https://a.example/1", "https://a.example/2",
		"http://a.example/3", "https://b.example/")...)
	f.mustAddExactly(1, robotsRedirectEntry("https://c.example/r.txt", "https://b.example"))
	want(storage.Counts{QueuedHosts: 3, DueHosts: 3, QueuedURLs: 5, SeenURLs: 4})
	// Leases and outcomes.
	leases := f.mustLeaseUpTo(at(0), 3)
	want(storage.Counts{QueuedHosts: 3, QueuedURLs: 2, LeasedURLs: 3, SeenURLs: 4})
	for _, l := range leases {
		switch l.URL.Origin().Host() {
		case "a.example":
			f.mustAck(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(10),
				HostState: &storage.HostState{Due: at(5)}})
		case "b.example":
			f.mustAck(storage.Ack{Lease: l, Outcome: storage.Park})
		case "c.example":
			f.mustAck(storage.Ack{Lease: l})
		}
	}
	want(storage.Counts{QueuedHosts: 1, QueuedURLs: 3, ParkedURLs: 1, SeenURLs: 4})
	// Holds: only suspended ones count as such.
	f.mustHoldOrigin(leases[0].URL.Origin().String(), at(100), true)
	f.mustHoldOrigin("https://a.example", at(100), true)
	f.mustHoldOrigin("http://a.example", at(100), true)
	want(storage.Counts{QueuedHosts: 1, QueuedURLs: 3, ParkedURLs: 1, SeenURLs: 4, SuspendedURLs: 3})
	f.mustHoldOrigin("https://a.example", at(50), false)
	f.mustHoldOrigin("http://a.example", at(50), false)
	want(storage.Counts{QueuedHosts: 1, QueuedURLs: 3, ParkedURLs: 1, SeenURLs: 4})
	f.mustLeaseUpTo(at(50), 1)
	want(storage.Counts{QueuedHosts: 1, QueuedURLs: 2, LeasedURLs: 1, ParkedURLs: 1, SeenURLs: 4})
}

// callEveryMethod calls methods of the Store with ctx, and returns the error of each.
func callEveryMethod(ctx context.Context, s storage.Store) map[string]error {
	a := mustOrigin("https://a.example")
	errs := make(map[string]error)
	_, errs["Add"] = s.Add(ctx, linkEntries("https://a.example/"), 0)
	_, _, errs["Lease"] = s.Lease(ctx, at(0), leaseTTL, 1)
	errs["Renew"] = s.Renew(ctx, storage.Lease{Entry: linkEntry("https://a.example/")}, at(0), leaseTTL)
	errs["Ack"] = s.Ack(ctx, nil)
	errs["Hold"] = s.Hold(ctx, a, at(1), false)
	_, errs["RescheduleByLastmod"] = s.RescheduleByLastmod(ctx, at(0), nil)
	_, errs["UnparkMatchingURLs"] = s.UnparkMatchingURLs(ctx, a, func(storage.Entry) bool { return true })
	_, errs["UnparkMatchingURLs of all"] = s.UnparkMatchingURLs(ctx, decorum.Origin{}, func(storage.Entry) bool {
		return true
	})
	_, errs["ReadNote"] = s.ReadNote(ctx, a, "key")
	errs["SetNote"] = s.SetNote(ctx, a, "key", nil)
	_, errs["Counts"] = s.(storage.Inspector).Counts(ctx)
	errs["Flush"] = s.Flush(ctx)
	return errs
}
