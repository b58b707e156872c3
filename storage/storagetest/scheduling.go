package storagetest

import (
	"bytes"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

var clockTests = []test{
	{"no host before its Due", func(f *fixture) {
		f.add(3, pages("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		f.visit(f.take(at(0), "https://a.example/1"), at(10))
		f.none(at(10).Add(-1))
		f.visit(f.take(at(10), "https://a.example/2"), at(12.5))
		f.next(at(12), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(12.5)})
		f.take(at(12.5), "https://a.example/3")
	}},
	{"one host does not hold another back", func(f *fixture) {
		f.add(3, pages("https://a.example/1", "https://a.example/2", "https://b.example/1")...)
		f.visit(f.lease(at(0), 1)[0], at(100))
		f.visit(f.lease(at(0), 1)[0], at(100))
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(100)})
	}},
	{"longest due first", func(f *fixture) {
		f.add(3, pages("https://a.example/", "https://b.example/", "https://c.example/")...)
		due := map[string]time.Time{"a.example": at(20), "b.example": at(10), "c.example": at(30)}
		for _, l := range f.lease(at(0), 3) {
			f.visit(l, due[l.URL.Origin().Host()])
		}
		f.add(3, pages("https://a.example/2", "https://b.example/2", "https://c.example/2")...)
		f.drain(at(40), "https://b.example/2", "https://a.example/2", "https://c.example/2")
	}},
	{"a host served again and again leaves others their turn", func(f *fixture) {
		for _, host := range []string{"a", "b"} {
			for _, path := range []string{"1", "2", "3"} {
				f.add(1, page("https://"+host+".example/"+path))
			}
		}
		var hosts []string
		for s := range 6 { // no delay: the host is due again as the visit ends
			l := f.lease(at(float64(s)), 1)[0]
			hosts = append(hosts, l.URL.Origin().Host()[:1])
			f.visit(l, at(float64(s)+0.5))
		}
		if got := strings.Join(hosts, ""); got != "ababab" && got != "bababa" {
			f.Errorf("served %s, want the hosts by turns", got)
		}
	}},
	{"never more of a host at a time than its slots", func(f *fixture) {
		f.add(4, pages("https://a.example/1", "https://a.example/2", "https://a.example/3", "https://a.example/4")...)
		leases := f.lease(at(0), 10)
		if len(leases) != 1 {
			f.Fatalf("a new host got %d slots, want 1", len(leases))
		}
		f.ack(storage.Ack{Lease: leases[0], Host: &storage.HostState{Slots: 2}})
		leases = f.lease(at(1), 10)
		if len(leases) != 2 {
			f.Fatalf("%d leases with 2 slots", len(leases))
		}
		f.none(at(1))
		f.ack(storage.Ack{Lease: leases[0], Host: &storage.HostState{Slots: 1}}) // one is out still
		f.none(at(1))
		f.ack(storage.Ack{Lease: leases[1]})
		f.take(at(1), "https://a.example/4")
	}},
	{"all origins of a host share its clock and slots", func(f *fixture) {
		f.add(3, pages("https://a.example/", "http://a.example/", "https://a.example:8443/")...)
		first := f.lease(at(0), 10)
		if len(first) != 1 {
			f.Fatalf("%d leases of one host", len(first))
		}
		f.visit(first[0], at(10))
		f.none(at(9))
		second := f.lease(at(10), 10)
		if len(second) != 1 || second[0].URL == first[0].URL {
			f.Fatalf("leased %d", len(second))
		}
	}},
	{"an origin leaves the others of its host their turn", func(f *fixture) {
		for _, path := range []string{"/1", "/2", "/3"} {
			f.add(2, page("http://a.example"+path), page("https://a.example"+path))
		}
		schemes := ""
		for s := range 6 {
			l := f.lease(at(float64(s)), 1)[0]
			schemes += l.URL.Origin().Scheme()[4:] + "-"
			f.visit(l, at(float64(s)+0.5))
		}
		if schemes != "-s--s--s-" && schemes != "s--s--s--" {
			f.Errorf("served %s, want http and https by turns", schemes)
		}
	}},
	{"Due never moves back", func(f *fixture) {
		f.add(2, pages("https://a.example/1", "https://a.example/2")...)
		l := f.take(at(0), "https://a.example/1")
		f.ack(storage.Ack{Lease: l, Outcome: storage.Requeue, Host: &storage.HostState{Due: at(100), Slots: 2}})
		l = f.take(at(100), "https://a.example/1")
		f.ack(storage.Ack{Lease: l, Host: &storage.HostState{Due: at(50), Delay: time.Second, ConsecutiveFailures: 1}})
		want := storage.HostState{Due: at(100), Delay: time.Second, ConsecutiveFailures: 1}
		if got := f.take(at(100), "https://a.example/2").Host; !sameHost(got, want) {
			f.Errorf("host %+v, want %+v", got, want)
		}
	}},
	{"a nil Host leaves the host as it was", func(f *fixture) {
		f.add(3, pages("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		want := storage.HostState{Due: at(10), Delay: 2 * time.Second, Slots: 3, ConsecutiveFailures: 4}
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/1"), Host: &want})
		f.ack(storage.Ack{Lease: f.take(at(10), "https://a.example/2")})
		if got := f.take(at(10), "https://a.example/3").Host; !sameHost(got, want) {
			f.Errorf("host %+v, want %+v", got, want)
		}
	}},
	{"a host's clock outlives its queue", func(f *fixture) {
		f.add(1, page("https://a.example/1"))
		f.visit(f.take(at(0), "https://a.example/1"), at(100))
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingNone})
		f.add(1, page("http://a.example/2"))
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(100)})
	}},
}

func sameHost(a, b storage.HostState) bool {
	return a.Due.Equal(b.Due) && a.Delay == b.Delay && a.Slots == b.Slots && a.ConsecutiveFailures == b.ConsecutiveFailures &&
		bytes.Equal(a.Stats, b.Stats)
}

var leaseTests = []test{
	{"Lease takes at most max", func(f *fixture) {
		f.add(3, pages("https://a.example/", "https://b.example/", "https://c.example/")...)
		if n := len(f.lease(at(0), 0)); n != 0 {
			f.Errorf("%d leases for max 0", n)
		}
		if n := len(f.lease(at(0), 2)); n != 2 {
			f.Errorf("%d leases for max 2", n)
		}
		if n := len(f.lease(at(0), 2)); n != 1 {
			f.Errorf("%d leases of what was left, want 1", n)
		}
	}},
	{"a lease says until when, and has a token of its own", func(f *fixture) {
		f.add(2, pages("https://a.example/", "https://b.example/")...)
		leases := f.lease(at(5), 2)
		if !leases[0].Expires.Equal(at(65)) {
			f.Errorf("expires %v, want %v", leases[0].Expires, at(65))
		}
		f.ack(storage.Ack{Lease: leases[0], Outcome: storage.Requeue})
		again := f.lease(at(5), 1)[0]
		if again.Token == leases[0].Token || again.Token == leases[1].Token || leases[0].Token == leases[1].Token {
			f.Error("two leases have the same token")
		}
	}},
	{"a lease that ran out goes to the head, and its host rests its Gap from then", func(f *fixture) {
		f.add(3, pages("https://a.example/1", "https://a.example/2", "https://a.example/3")...)
		l := f.take(at(0), "https://a.example/1")
		f.ack(storage.Ack{Lease: l, Host: &storage.HostState{Due: at(10), Delay: 7 * time.Second}})
		f.take(at(10), "https://a.example/2")
		f.add(1, of(storage.ClassFirst, "https://a.example/first"))
		f.next(at(70).Add(-1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(70)})
		f.next(at(75), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(77)}) // from 70, not from 75
		f.drain(at(77), "https://a.example/2", "https://a.example/first", "https://a.example/3")
	}},
	{"a lease that ran out gives its slot free", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		f.take(at(0), "https://a.example/")
		f.take(at(60), "https://a.example/")
		f.none(at(119))
		f.take(at(120), "https://a.example/")
	}},
	{"Renew lets a lease run on", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		l := f.take(at(0), "https://a.example/")
		f.must(f.store.Renew(f.Context(), l, at(50), 30*time.Second))
		f.next(at(60), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(80)})
		f.must(f.store.Renew(f.Context(), l, at(79), ttl)) // the same value, renewed again
		f.none(at(138))
		f.take(at(139), "https://a.example/")
	}},
	{"Renew refuses a lease that ran out", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		l := f.take(at(0), "https://a.example/")
		f.stale(f.store.Renew(f.Context(), l, at(60), ttl))
		again := f.take(at(60), "https://a.example/")
		f.stale(f.store.Renew(f.Context(), l, at(61), ttl))
		f.must(f.store.Renew(f.Context(), again, at(61), ttl))
	}},
	{"Renew refuses a lease that has ended", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		l := f.take(at(0), "https://a.example/")
		f.ack(storage.Ack{Lease: l})
		f.stale(f.store.Renew(f.Context(), l, at(1), ttl))
	}},
}

var nextTests = []test{
	{"Nothing: no URL is queued and no lease is out", func(f *fixture) {
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingNone})
		f.add(2, pages("https://a.example/1", "https://a.example/2")...)
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/1"), Outcome: storage.Park})
		l := f.take(at(0), "https://a.example/2")
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(60)})
		f.ack(storage.Ack{Lease: l, Outcome: storage.Drop})
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingNone}) // what is parked is not queued
	}},
	{"Waiting for the host, the hold, the retry or a lease, whichever is earliest", func(f *fixture) {
		f.add(6, pages("https://due.example/1", "https://due.example/2", "https://held.example/",
			"https://later.example/", "https://out.example/", "https://out.example/2")...)
		f.hold("https://held.example", at(50), false)
		for _, l := range f.lease(at(0), 10) {
			switch l.URL.Origin().Host() {
			case "due.example":
				f.visit(l, at(40))
			case "later.example":
				f.ack(storage.Ack{Lease: l, Outcome: storage.RetryAt, NotBefore: at(30)})
			}
		}
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(30)})
		f.ack(storage.Ack{Lease: f.take(at(30), "https://later.example/")})
		f.next(at(31), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(40)})
		f.ack(storage.Ack{Lease: f.take(at(40), "https://due.example/2")})
		f.next(at(41), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(50)})
		f.ack(storage.Ack{Lease: f.take(at(50), "https://held.example/")})
		f.next(at(51), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(60)})
	}},
	{"Waiting until both the host is due and the retry time has come", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		f.ack(storage.Ack{
			Lease: f.take(at(0), "https://a.example/"), Outcome: storage.RetryAt, NotBefore: at(30),
			Host: &storage.HostState{Due: at(20)},
		})
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(30)})
		f.hold("https://a.example", at(40), false)
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(40)})
		f.none(at(39))
		f.take(at(40), "https://a.example/")
	}},
	{"Dormant: only origins under a dormant hold have URLs; At is the earliest end", func(f *fixture) {
		f.add(3, pages("https://a.example/", "https://b.example/", "https://c.example/")...)
		f.hold("https://a.example", at(300), true)
		f.hold("https://b.example", at(200), true)
		f.hold("https://empty.example", at(100), true)
		l := f.take(at(0), "https://c.example/")
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(60)}) // a lease is out
		f.ack(storage.Ack{Lease: l})
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingSuspended, Until: at(200)})
		f.add(1, page("https://d.example/"))
		f.hold("https://d.example", at(150), false)
		f.next(at(1), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(150)}) // somebody waits for d
		f.drain(at(200), "https://d.example/", "https://b.example/")
		f.next(at(201), storage.Wait{RemainingWork: storage.RemainingSuspended, Until: at(300)})
	}},
	{"what was put off under a dormant hold is dormant", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		f.ack(storage.Ack{Lease: f.take(at(0), "https://a.example/"), Outcome: storage.RetryAt, NotBefore: at(10)})
		f.hold("https://a.example", at(99), true)
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingSuspended, Until: at(99)})
	}},
	{"Add, Ack, Hold and Revive may bring one earlier", func(f *fixture) {
		f.add(1, page("https://a.example/"))
		f.hold("https://a.example", at(100), false)
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(100)})
		f.add(1, page("https://b.example/"))
		l := f.take(at(0), "https://b.example/")
		f.ack(storage.Ack{Lease: l, Outcome: storage.Requeue})
		f.drain(at(0), "https://b.example/")
		f.hold("https://a.example", at(50), false)
		f.next(at(0), storage.Wait{RemainingWork: storage.RemainingPending, Until: at(50)})
	}},
}
