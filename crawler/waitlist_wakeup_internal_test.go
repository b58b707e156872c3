package crawler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// newWaitlist returns an empty waitlist.
func (p *partsFixture) newWaitlist(brakes *politeness.Brakes) *waitlist {
	return &waitlist{waitlistConfig: waitlistConfig{limiter: p.limiter, brakes: brakes,
		frontier: p.frontier, closeStoppedConns: func() {}, now: time.Now}}
}

// turnAway requeues l, whose host another crawl visits, through the waitlist.
func (p *partsFixture) turnAway(t *testing.T, w *waitlist, l storage.Lease, meanwhile func()) {
	t.Helper()
	_, d := p.limiter.Reserve(time.Now(), l.URL.Origin().Host(), politeness.PermitRequest{HostSlots: 1})
	if d.Reason != decorum.ReasonHostBusy {
		t.Fatalf("decision %+v, want that the host is busy", d)
	}
	meanwhile()
	result, err := w.postponeBusyLease(t.Context(), l, d.Until)
	if err != nil {
		t.Fatal(err)
	}
	p.ack(t, l, result)
}

// brakeLease requeues l, whose host is under a brake, through the waitlist.
func (p *partsFixture) brakeLease(t *testing.T, w *waitlist, l storage.Lease, b politeness.Brake) {
	t.Helper()
	result, err := w.postponeBrakedLease(t.Context(), l, b.Decision(b.Until))
	if err != nil {
		t.Fatal(err)
	}
	p.ack(t, l, result)
}

// checkHandedOut fails the test unless the store hands out n URLs now. It returns them.
func (p *partsFixture) checkHandedOut(t *testing.T, when string, n int) {
	t.Helper()
	leases := p.leaseNow(t, 10)
	if len(leases) != n {
		t.Errorf("%s: %d URLs are handed out, want %d", when, len(leases), n)
	}
	for _, l := range leases {
		p.ack(t, l, leaseOutcome{outcome: storage.Requeue})
	}
}

// TestWaitlistCallsWhoseTurnHasCome: a URL whose host another crawl visits is handed out when that
// visit is over, and not before.
func TestWaitlistCallsWhoseTurnHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		w, taken, l := p.newWaitlist(nil), mustPermit(t, p.other, "a.test"), p.leaseURL(t, "http://a.test/")
		p.turnAway(t, w, l, func() {})
		if err := w.wakeReadyHosts(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.checkHandedOut(t, "while the other visits the host", 0)
		p.other.ReleaseUnused(time.Now(), taken)
		p.checkHandedOut(t, "before it is called", 0)
		if err := w.wakeReadyHosts(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.checkHandedOut(t, "when its turn has come", 1)
	})
}

// TestWaitlistMissesNoCall: a turn that is granted, and reported to another worker, before the
// origin is held is not lost.
func TestWaitlistMissesNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		w, taken, l := p.newWaitlist(nil), mustPermit(t, p.other, "a.test"), p.leaseURL(t, "http://a.test/")
		p.turnAway(t, w, l, func() {
			p.other.ReleaseUnused(time.Now(), taken)
			if len(p.limiter.TakeGrantedTurns()) != 1 {
				t.Error("its turn has not come")
			}
		})
		p.checkHandedOut(t, "when its turn came before it was put off", 1)
	})
}

// TestWaitlistFollowsBrakes: a URL that a brake stops is handed out when the brake is lifted, not
// while another one stops it; and at once, if the brake was lifted before the origin was held.
func TestWaitlistFollowsBrakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, brakes := newPartsFixture(t), &politeness.Brakes{}
		w, l, stop := p.newWaitlist(brakes), p.leaseURL(t, "http://a.test/"),
			politeness.Brake{Host: "a.test", Stop: true}
		set := func(b politeness.Brake) {
			t.Helper()
			if err := brakes.Set(b); err != nil {
				t.Fatal(err)
			}
		}
		update := func() {
			t.Helper()
			if err := w.updateBrakedOriginHolds(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		set(stop)
		p.brakeLease(t, w, l, stop)
		p.checkHandedOut(t, "while it is stopped", 0)
		longer := stop
		longer.Until = time.Now().Add(time.Hour)
		set(longer)
		update()
		p.checkHandedOut(t, "while another brake stops it", 0)
		brakes.Remove("a.test")
		p.checkHandedOut(t, "before it is called", 0)
		update()
		p.checkHandedOut(t, "when the brake is lifted", 1)
		p.brakeLease(t, w, p.leaseOne(t), stop)
		p.checkHandedOut(t, "when the brake was lifted before it was put off", 1)
	})
}

// TestWaitlistEndsAllWaiting: no origin stays held when the crawl that would wake it is over.
func TestWaitlistEndsAllWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, brakes, stop := newPartsFixture(t), &politeness.Brakes{}, politeness.Brake{Host: "b.test", Stop: true}
		if err := brakes.Set(stop); err != nil {
			t.Fatal(err)
		}
		w := p.newWaitlist(brakes)
		mustPermit(t, p.other, "a.test")
		p.turnAway(t, w, p.leaseURL(t, "http://a.test/"), func() {})
		p.brakeLease(t, w, p.leaseURL(t, "http://b.test/"), stop)
		p.checkHandedOut(t, "before the end", 0)
		if err := w.wakeAllWaitingOrigins(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.checkHandedOut(t, "at the end", 2)
	})
}
