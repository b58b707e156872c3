package storagetest

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

var ackTests = []testCase{
	{"Done and Drop leave the queue", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"), Outcome: storage.Done})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/2"), Outcome: storage.Drop})
		f.wantWait(at(1000), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a stale ack is refused, the other acks take effect", func(f *fixture) {
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
		f.mustLeaseURL(at(0), "https://a.example/") // requeued once, and not Done
		f.wantNoLease(at(0))
	}},
	{"a token that Lease never returned is stale", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		l.Token += 1 << 40
		f.wantStale(f.store.Ack(f.Context(), []storage.Ack{{Lease: l}}))
	}},
	{"an ack after the expiry takes effect if no Lease has returned the URL to its queue", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/")}) // the Ack has no time
		f.wantWait(at(600), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
	{"a URL that stays in the store has the Entry of its ack", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		now := at(0)
		for i, outcome := range []storage.AckOutcome{storage.Requeue, storage.RetryAt, storage.Park} {
			l := f.mustLeaseURL(now, "https://a.example/")
			if l.FailedAttempts != i {
				f.Fatalf("%d failed attempts, want %d", l.FailedAttempts, i)
			}
			l.FailedAttempts++
			l.CallbackData = append(l.CallbackData, '.')
			now = now.Add(time.Second)
			f.mustAck(storage.Ack{Lease: l, Outcome: outcome, NotBefore: now})
		}
		_, err := f.store.UnparkMatchingURLs(f.Context(), mustOrigin("https://a.example"), func(storage.Entry) bool {
			return true
		})
		f.must(err)
		if l := f.mustLeaseURL(now, "https://a.example/"); l.FailedAttempts != 3 || string(l.CallbackData) != "..." {
			f.Errorf("%d failed attempts, callback data %q, want 3 and \"...\"", l.FailedAttempts, l.CallbackData)
		}
	}},
	{"RetryAt does not stop the rest of the queue", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"),
			Outcome: storage.RetryAt, NotBefore: at(100)})
		f.wantOrder(at(0), "https://a.example/2")
		f.wantOrder(at(100), "https://a.example/1")
	}},
	{"RetryAt with a time in the past is due at once", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(10), "https://a.example/"), Outcome: storage.RetryAt})
		f.mustLeaseURL(at(10), "https://a.example/")
	}},
}

var holdTests = []testCase{
	{"a held origin leases no URL before the end of the hold", func(f *fixture) {
		f.mustHoldOrigin("https://a.example", at(10), false) // the store does not know the origin yet
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.wantNoLease(at(10).Add(-1))
		f.mustLeaseURL(at(10), "https://a.example/")
	}},
	{"a hold applies to one origin, not to its host", func(f *fixture) {
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
	{"NextURLDue follows the host's rest, its holds, retry times and leases", func(f *fixture) {
		store, ok := f.store.(storage.NextDueReporter)
		if !ok {
			f.Skip("the store cannot tell without I/O")
		}
		want := func(when string, want time.Time) {
			f.Helper()
			if due, known := store.NextURLDue(context.Background(), "a.example"); !known || !due.Equal(want) {
				f.Errorf("%s: the next URL is due at %v (known: %v), want %v", when, due, known, want)
			}
		}
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.ackVisit(f.mustLeaseURL(at(0), "https://a.example/1"), at(10))
		want("a rest", at(10))
		f.mustHoldOrigin("https://a.example", at(20), true)
		want("a hold", at(20))
		l := f.mustLeaseURL(at(20), "https://a.example/2")
		want("a lease", at(10))
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(30)})
		want("a retry", at(30))
		f.ackVisit(f.mustLeaseURL(at(30), "https://a.example/2"), at(40))
		want("no URL", time.Time{})
	}},
	{"a new hold replaces the one before, longer or shorter", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		for _, until := range []float64{100, 200, 50} {
			f.mustHoldOrigin("https://a.example", at(until), false)
			f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(until)})
		}
	}},
	{"redirects of an origin's robots.txt are leased during its hold, ahead of its queue", func(f *fixture) {
		f.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/page"))
		f.mustHoldOrigin("https://a.example", at(100), true)
		f.mustAddExactly(2, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"),
			robotsRedirectEntry("https://b.example/r.txt", "https://a.example"))
		leases := f.mustLeaseUpTo(at(0), 10)
		if len(leases) != 2 {
			f.Fatalf("%d leases, want the two redirects of robots.txt", len(leases))
		}
		for _, l := range leases {
			if l.RobotsFor != mustOrigin("https://a.example") {
				f.Errorf("leased %v under a hold", l.URL)
			}
			f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		}
		f.mustHoldOrigin("https://a.example", time.Time{}, false)
		if l := f.mustLeaseUpTo(at(1), 10); len(l) != 2 || l[0].RobotsFor.IsZero() || l[1].RobotsFor.IsZero() {
			f.Error("the redirects of robots.txt do not go first")
		}
	}},
	{"a redirect from another origin's robots.txt is held with the origin of its URL", func(f *fixture) {
		f.mustHoldOrigin("https://b.example", at(10), true)
		f.mustAddExactly(1, robotsRedirectEntry("https://b.example/r.txt", "https://a.example"))
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(10)})
	}},
	{"a redirect of the origin's robots.txt is pending during a suspended hold", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustHoldOrigin("https://a.example", at(100), true)
		f.mustAddExactly(1, robotsRedirectEntry("https://a.example/r.txt", "https://a.example"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/r.txt"),
			Outcome: storage.RetryAt, NotBefore: at(30)})
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(30)})
		f.wantOrder(at(30), "https://a.example/r.txt")
		f.wantWait(at(31), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(100)})
	}},
	{"a hold does not end a lease", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.mustHoldOrigin("https://a.example", at(10), false)
		f.mustAck(storage.Ack{Lease: l})
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingNone})
	}},
}
