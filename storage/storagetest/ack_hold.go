package storagetest

import (
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

var ackTests = []testCase{
	{"Done and Gone leave the queue", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"), Outcome: storage.Done})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/2"), Outcome: storage.Drop})
		f.wantWait(at(1000), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a stale ack is refused, the others take effect", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/", "https://b.example/", "https://c.example/")...)
		old := f.mustLeaseUpTo(at(0), 3)
		again := f.mustLeaseUpTo(at(60), 3)
		if len(again) != 3 {
			f.Fatalf("%d leases ran out, want 3", len(again))
		}
		f.wantStale(f.store.Ack(f.Context(), []storage.Ack{
			{Lease: again[0]},
			{Lease: old[0], Outcome: storage.Park, HostState: &storage.HostState{Due: at(1000)}},
			{Lease: again[1], Outcome: storage.Requeue},
		}))
		if c := f.mustGetCounts(); c.LeasedURLs != 1 || c.QueuedURLs != 1 || c.ParkedURLs != 0 {
			f.Errorf("counts %+v, want one leased, one queued, none parked", c)
		}
		f.mustLeaseURL(at(61), again[1].URL.String()) // the refused ack did not move Due
	}},
	{"a lease ends once", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.wantStale(f.store.Ack(f.Context(), []storage.Ack{{Lease: l, Outcome: storage.Requeue}, {Lease: l}}))
		f.mustLeaseURL(at(0), "https://a.example/") // given back once, and not done
		f.wantNoLease(at(0))
	}},
	{"a token that was never given is stale", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		l.Token += 1 << 40
		f.wantStale(f.store.Ack(f.Context(), []storage.Ack{{Lease: l}}))
	}},
	{"an ack after ttl holds if the URL was not given away", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/")}) // whenever that is
		f.wantWait(at(600), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"what is kept is kept as the ack has it", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		now := at(0)
		for i, outcome := range []storage.AckOutcome{storage.Requeue, storage.RetryAt, storage.Park} {
			l := f.mustLeaseURL(now, "https://a.example/")
			if l.FailedAttempts != i {
				f.Fatalf("attempt %d, want %d", l.FailedAttempts, i)
			}
			l.FailedAttempts++
			l.CallbackData = append(l.CallbackData, '.')
			now = now.Add(time.Second)
			f.mustAck(storage.Ack{Lease: l, Outcome: outcome, NotBefore: now})
		}
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(storage.Entry) bool { return true })
		f.must(err)
		if l := f.mustLeaseURL(now, "https://a.example/"); l.FailedAttempts != 3 || string(l.CallbackData) != "..." {
			f.Errorf("attempt %d, context %q", l.FailedAttempts, l.CallbackData)
		}
	}},
	{"Later does not stop the rest of the queue", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"), Outcome: storage.RetryAt, NotBefore: at(100)})
		f.wantOrder(at(0), "https://a.example/2")
		f.wantOrder(at(100), "https://a.example/1")
	}},
	{"Later with a time that has passed is due at once", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(10), "https://a.example/"), Outcome: storage.RetryAt})
		f.mustLeaseURL(at(10), "https://a.example/")
	}},
}

var holdTests = []testCase{
	{"Hold hands out no URL of the origin before until", func(f *fixture) {
		f.mustHoldOrigin("https://a.example", at(10), false) // an origin not known yet
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.wantNoLease(at(10).Add(-1))
		f.mustLeaseURL(at(10), "https://a.example/")
	}},
	{"a hold is of one origin, not of its host", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/", "http://a.example/")...)
		f.mustHoldOrigin("https://a.example", at(10), false)
		f.wantOrder(at(0), "http://a.example/")
		f.wantOrder(at(10), "https://a.example/")
	}},
	{"a zero time ends the hold", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustHoldOrigin("https://a.example", at(100), true)
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(100)})
		f.mustHoldOrigin("https://a.example", time.Time{}, false)
		f.mustLeaseURL(at(0), "https://a.example/")
	}},
	{"the latest hold stands, longer or shorter", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		for _, until := range []float64{100, 200, 50} {
			f.mustHoldOrigin("https://a.example", at(until), false)
			f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(until)})
		}
	}},
	{"an origin's hops are handed out under its hold, ahead of its queue", func(f *fixture) {
		f.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/page"))
		f.mustHoldOrigin("https://a.example", at(100), true)
		f.mustAddExactly(2, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"), robotsRedirectEntry("https://b.example/r.txt", "https://a.example"))
		leases := f.mustLeaseUpTo(at(0), 10)
		if len(leases) != 2 {
			f.Fatalf("%d leases, want the two hops", len(leases))
		}
		for _, l := range leases {
			if l.RobotsFor != mustOrigin("https://a.example") {
				f.Errorf("leased %v under a hold", l.URL)
			}
			f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		}
		f.mustHoldOrigin("https://a.example", time.Time{}, false)
		if l := f.mustLeaseUpTo(at(1), 10); len(l) != 2 || l[0].RobotsFor.IsZero() || l[1].RobotsFor.IsZero() {
			f.Error("the hops do not go first")
		}
	}},
	{"a hop for another origin is under the hold of its own", func(f *fixture) {
		f.mustHoldOrigin("https://b.example", at(10), true)
		f.mustAddExactly(1, robotsRedirectEntry("https://b.example/r.txt", "https://a.example"))
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(10)})
	}},
	{"a hop under a dormant hold is waited for", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustHoldOrigin("https://a.example", at(100), true)
		f.mustAddExactly(1, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/r.txt"), Outcome: storage.RetryAt, NotBefore: at(30)})
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(30)})
		f.wantOrder(at(30), "https://a.example/r.txt")
		f.wantWait(at(31), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(100)})
	}},
	{"a hold stops no lease that is out", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.mustHoldOrigin("https://a.example", at(10), false)
		f.mustAck(storage.Ack{Lease: l})
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
}
