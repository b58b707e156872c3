package storagetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

var schedulingTests = []testCase{
	{"Lease returns no URL of a host before its Due", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		f.ackVisit(f.mustLeaseURL(at(0), "https://a.example/1"), at(10))
		f.wantNoLease(at(10).Add(-1))
		f.ackVisit(f.mustLeaseURL(at(10), "https://a.example/2"), at(12.5))
		f.wantWait(at(12), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(12.5)})
		f.mustLeaseURL(at(12.5), "https://a.example/3")
	}},
	{"one host does not delay another", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://b.example/1")...)
		f.ackVisit(f.mustLeaseUpTo(at(0), 1)[0], at(100))
		f.ackVisit(f.mustLeaseUpTo(at(0), 1)[0], at(100))
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
	}},
	{"the host that has been due longest is leased first", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/", "https://b.example/", "https://c.example/")...)
		due := map[string]time.Time{"a.example": at(20), "b.example": at(10), "c.example": at(30)}
		for _, l := range f.mustLeaseUpTo(at(0), 3) {
			f.ackVisit(l, due[l.URL.Origin().Host()])
		}
		f.mustAddExactly(3, linkEntries("https://a.example/2", "https://b.example/2", "https://c.example/2")...)
		f.wantOrder(at(40), "https://b.example/2", "https://a.example/2", "https://c.example/2")
	}},
	{"a host that is due again at once takes turns with other hosts", func(f *fixture) {
		for _, host := range []string{"a", "b"} {
			for _, path := range []string{"1", "2", "3"} {
				f.mustAddExactly(1, linkEntry("https://"+host+".example/"+path))
			}
		}
		var hosts []string
		for s := range 6 { // the host is due again after 0.5 s, before the next Lease
			l := f.mustLeaseUpTo(at(float64(s)), 1)[0]
			hosts = append(hosts, l.URL.Origin().Host()[:1])
			f.ackVisit(l, at(float64(s)+0.5))
		}
		if got := strings.Join(hosts, ""); got != "ababab" && got != "bababa" {
			f.Errorf("served %s, want the hosts by turns", got)
		}
	}},
	{"a host never has more leases than its Slots", func(f *fixture) {
		f.mustAddExactly(4, linkEntries("https://a.example/1", "https://a.example/2",
			"https://a.example/3", "https://a.example/4")...)
		leases := f.mustLeaseUpTo(at(0), 10)
		if len(leases) != 1 {
			f.Fatalf("a new host got %d slots, want 1", len(leases))
		}
		f.mustAck(storage.Ack{Lease: leases[0], HostState: &storage.HostState{Slots: 2}})
		leases = f.mustLeaseUpTo(at(1), 10)
		if len(leases) != 2 {
			f.Fatalf("%d leases with 2 slots", len(leases))
		}
		f.wantNoLease(at(1))
		f.mustAck(storage.Ack{Lease: leases[0], HostState: &storage.HostState{Slots: 1}}) // one lease is left
		f.wantNoLease(at(1))
		f.mustAck(storage.Ack{Lease: leases[1]})
		f.mustLeaseURL(at(1), "https://a.example/4")
	}},
	{"all origins of a host share its clock and slots", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/", "http://a.example/", "https://a.example:8443/")...)
		first := f.mustLeaseUpTo(at(0), 10)
		if len(first) != 1 {
			f.Fatalf("%d leases of one host", len(first))
		}
		f.ackVisit(first[0], at(10))
		f.wantNoLease(at(9))
		second := f.mustLeaseUpTo(at(10), 10)
		if len(second) != 1 || second[0].URL == first[0].URL {
			f.Fatalf("leased %d", len(second))
		}
	}},
	{"the origins of a host take turns", func(f *fixture) {
		for _, path := range []string{"/1", "/2", "/3"} {
			f.mustAddExactly(2, linkEntry("http://a.example"+path), linkEntry("https://a.example"+path))
		}
		schemes := ""
		for s := range 6 {
			l := f.mustLeaseUpTo(at(float64(s)), 1)[0]
			schemes += l.URL.Origin().Scheme()[4:] + "-"
			f.ackVisit(l, at(float64(s)+0.5))
		}
		if schemes != "-s--s--s-" && schemes != "s--s--s--" {
			f.Errorf("served %s, want http and https by turns", schemes)
		}
	}},
	{"Due never moves back", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		l := f.mustLeaseURL(at(0), "https://a.example/1")
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue,
			HostState: &storage.HostState{Due: at(100), Slots: 2}})
		l = f.mustLeaseURL(at(100), "https://a.example/1")
		f.mustAck(storage.Ack{Lease: l, HostState: &storage.HostState{Due: at(50),
			LostVisitDelay: time.Second, ConsecutiveFailures: 1}})
		want := storage.HostState{Due: at(100), LostVisitDelay: time.Second, ConsecutiveFailures: 1}
		if got := f.mustLeaseURL(at(100), "https://a.example/2").HostState; !equalHostStates(got, want) {
			f.Errorf("host %+v, want %+v", got, want)
		}
	}},
	{"a nil HostState leaves the host unchanged", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		want := storage.HostState{Due: at(10), LostVisitDelay: 2 * time.Second, Slots: 3, ConsecutiveFailures: 4}
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"), HostState: &want})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(10), "https://a.example/2")})
		if got := f.mustLeaseURL(at(10), "https://a.example/3").HostState; !equalHostStates(got, want) {
			f.Errorf("host %+v, want %+v", got, want)
		}
	}},
	{"a host keeps its clock when its queue is empty", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/1"))
		f.ackVisit(f.mustLeaseURL(at(0), "https://a.example/1"), at(100))
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingNone})
		f.mustAddExactly(1, linkEntry("http://a.example/2"))
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
	}},
}

func equalHostStates(a, b storage.HostState) bool {
	return a.Due.Equal(b.Due) && a.LostVisitDelay == b.LostVisitDelay && a.Slots == b.Slots &&
		a.ConsecutiveFailures == b.ConsecutiveFailures &&
		bytes.Equal(a.EncodedStats, b.EncodedStats)
}

var leaseTests = []testCase{
	{"Lease takes at most max", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/", "https://b.example/", "https://c.example/")...)
		if n := len(f.mustLeaseUpTo(at(0), 0)); n != 0 {
			f.Errorf("%d leases for max 0", n)
		}
		if n := len(f.mustLeaseUpTo(at(0), 2)); n != 2 {
			f.Errorf("%d leases for max 2", n)
		}
		if n := len(f.mustLeaseUpTo(at(0), 2)); n != 1 {
			f.Errorf("%d leases of the last host, want 1", n)
		}
	}},
	{"a lease has the time of its expiry, and a unique token", func(f *fixture) {
		f.mustAddExactly(2, linkEntries("https://a.example/", "https://b.example/")...)
		leases := f.mustLeaseUpTo(at(5), 2)
		if !leases[0].Expires.Equal(at(65)) {
			f.Errorf("expires %v, want %v", leases[0].Expires, at(65))
		}
		f.mustAck(storage.Ack{Lease: leases[0], Outcome: storage.Requeue})
		again := f.mustLeaseUpTo(at(5), 1)[0]
		if again.Token == leases[0].Token || again.Token == leases[1].Token || leases[0].Token == leases[1].Token {
			f.Error("two leases have the same token")
		}
	}},
	{"the URL of an expired lease goes to the head; its host is due LostVisitDelay later", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		l := f.mustLeaseURL(at(0), "https://a.example/1")
		f.mustAck(storage.Ack{Lease: l, HostState: &storage.HostState{Due: at(10), LostVisitDelay: 7 * time.Second}})
		f.mustLeaseURL(at(10), "https://a.example/2")
		f.mustAddExactly(1, entryOfClass(storage.ClassFirst, "https://a.example/first"))
		f.wantWait(at(70).Add(-1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(70)})
		// LostVisitDelay begins at 70 s, when the lease expired, not at 75 s.
		f.wantWait(at(75), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(77)})
		f.wantOrder(at(77), "https://a.example/2", "https://a.example/first", "https://a.example/3")
	}},
	{"an expired lease frees its slot", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustLeaseURL(at(0), "https://a.example/")
		f.mustLeaseURL(at(60), "https://a.example/")
		f.wantNoLease(at(119))
		f.mustLeaseURL(at(120), "https://a.example/")
	}},
	{"Renew extends a lease", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.must(f.store.Renew(f.Context(), l, at(50), 30*time.Second))
		f.wantWait(at(60), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(80)})
		f.must(f.store.Renew(f.Context(), l, at(79), leaseTTL)) // with the same Lease value
		f.wantNoLease(at(138))
		f.mustLeaseURL(at(139), "https://a.example/")
	}},
	{"Renew refuses a lease that has expired", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.wantStale(f.store.Renew(f.Context(), l, at(60), leaseTTL))
		again := f.mustLeaseURL(at(60), "https://a.example/")
		f.wantStale(f.store.Renew(f.Context(), l, at(61), leaseTTL))
		f.must(f.store.Renew(f.Context(), again, at(61), leaseTTL))
	}},
	{"Renew refuses a lease that has ended", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		l := f.mustLeaseURL(at(0), "https://a.example/")
		f.mustAck(storage.Ack{Lease: l})
		f.wantStale(f.store.Renew(f.Context(), l, at(1), leaseTTL))
	}},
}

var waitTests = []testCase{
	{"RemainingNone: no URL is queued or leased", func(f *fixture) {
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingNone})
		f.mustAddExactly(2, linkEntries("https://a.example/1", "https://a.example/2")...)
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/1"), Outcome: storage.Park})
		l := f.mustLeaseURL(at(0), "https://a.example/2")
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(60)})
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Drop})
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingNone}) // parked URLs do not count
	}},
	{"RemainingPending until the host is due, the hold ends, the retry is due or a lease expires", func(f *fixture) {
		f.mustAddExactly(6, linkEntries("https://due.example/1", "https://due.example/2", "https://held.example/",
			"https://later.example/", "https://out.example/", "https://out.example/2")...)
		f.mustHoldOrigin("https://held.example", at(50), false)
		for _, l := range f.mustLeaseUpTo(at(0), 10) {
			switch l.URL.Origin().Host() {
			case "due.example":
				f.ackVisit(l, at(40))
			case "later.example":
				f.mustAck(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(30)})
			}
		}
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(30)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(30), "https://later.example/")})
		f.wantWait(at(31), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(40)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(40), "https://due.example/2")})
		f.wantWait(at(41), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(50)})
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(50), "https://held.example/")})
		f.wantWait(at(51), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(60)})
	}},
	{"RemainingPending until both the host and the retry are due", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustAck(storage.Ack{
			Lease: f.mustLeaseURL(at(0), "https://a.example/"), Outcome: storage.RetryAt, NotBefore: at(30),
			HostState: &storage.HostState{Due: at(20)},
		})
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(30)})
		f.mustHoldOrigin("https://a.example", at(40), false)
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(40)})
		f.wantNoLease(at(39))
		f.mustLeaseURL(at(40), "https://a.example/")
	}},
	{"RemainingSuspended: only origins under a suspended hold have URLs; Until is the earliest end", func(f *fixture) {
		f.mustAddExactly(3, linkEntries("https://a.example/", "https://b.example/", "https://c.example/")...)
		f.mustHoldOrigin("https://a.example", at(300), true)
		f.mustHoldOrigin("https://b.example", at(200), true)
		f.mustHoldOrigin("https://empty.example", at(100), true)
		l := f.mustLeaseURL(at(0), "https://c.example/")
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(60)}) // a lease is out
		f.mustAck(storage.Ack{Lease: l})
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(200)})
		f.mustAddExactly(1, linkEntry("https://d.example/"))
		f.mustHoldOrigin("https://d.example", at(150), false)
		// The hold of d is not suspended.
		f.wantWait(at(1), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(150)})
		f.wantOrder(at(200), "https://d.example/", "https://b.example/")
		f.wantWait(at(201), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(300)})
	}},
	{"a delayed URL under a suspended hold is suspended", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustAck(storage.Ack{Lease: f.mustLeaseURL(at(0), "https://a.example/"),
			Outcome: storage.RetryAt, NotBefore: at(10)})
		f.mustHoldOrigin("https://a.example", at(99), true)
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: at(99)})
	}},
	{"Add, Ack and Hold may make a URL due before Wait.Until", func(f *fixture) {
		f.mustAddExactly(1, linkEntry("https://a.example/"))
		f.mustHoldOrigin("https://a.example", at(100), false)
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(100)})
		f.mustAddExactly(1, linkEntry("https://b.example/"))
		l := f.mustLeaseURL(at(0), "https://b.example/")
		f.mustAck(storage.Ack{Lease: l, Outcome: storage.Requeue})
		f.wantOrder(at(0), "https://b.example/")
		f.mustHoldOrigin("https://a.example", at(50), false)
		f.wantWait(at(0), storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: at(50)})
	}},
}
