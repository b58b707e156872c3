package crawler

import (
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A countingCoordinator is a Coordinator that counts pages.
type countingCoordinator struct{ pages int }

func (c *countingCoordinator) CheckVisit(time.Time) decorum.Decision { return decorum.Decision{} }
func (c *countingCoordinator) AcquireCrawlPageBudget() decorum.Decision {
	c.pages++
	return decorum.Decision{}
}
func (c *countingCoordinator) ReleaseCrawlPageBudget() { c.pages-- }
func (c *countingCoordinator) AddBodyBytes(int64)      {}

// A visitFixture is a leasedVisit that has taken every resource.
type visitFixture struct {
	*partsFixture
	leasedVisit
	coordinator countingCoordinator
	addr        netip.Addr // address whose slot the visit has
}

// newVisitFixture takes a lease and every resource for its visit: to a page, or to the robots.txt
// of an unknown origin.
func newVisitFixture(t *testing.T, isRobots bool) *visitFixture {
	t.Helper()
	p := newPartsFixture(t)
	if !isRobots {
		p.learnRobots(t, mustParseURL(t, "http://a.test/"), "")
	}
	f := &visitFixture{partsFixture: p, addr: netip.MustParseAddr("93.184.216.34")}
	budget := &runBudget{}
	budget.beginRun(Settings{}, &f.coordinator)
	f.leasedVisitConfig = leasedVisitConfig{activeLeases: &activeLeases{}, hosts: p.newHostTable(),
		tdmrepCache: &tdmrepCache{},
		gate:        p.gate, limiter: p.limiter, budget: budget, now: time.Now}
	l := p.leaseURL(t, "http://a.test/")
	f.take(t.Context(), l)
	f.clear(p.check(t, l.URL))
	f.permit = mustPermit(t, p.limiter, "a.test")
	if err := f.permit.ClaimServerAddr(time.Now(), f.addr); err != nil {
		t.Fatal(err)
	}
	f.tdmrepCache.claimLookup(l)
	if d := f.countPage(); d.Action != decorum.Proceed {
		t.Fatal(d.Err())
	}
	return f
}

// A heldCount says which resources a visit holds: 1 for held, 0 for returned.
type heldCount struct{ lease, host, tdmrep, page, coordinated, lookup, hostSlot, addrSlot int }

// held tests which resources the visit holds. It takes what another crawl may have, and returns it.
func (f *visitFixture) held(t *testing.T) (n heldCount) {
	t.Helper()
	n.lease, n.tdmrep = len(f.activeLeases.all()), len(f.tdmrepCache.lookupLeaseTokens)
	n.host, n.page, n.coordinated = f.hosts.hosts["a.test"].leaseCount,
		int(f.budget.pagesBegun.Load()), f.coordinator.pages
	cl, err := f.partsFixture.gate.Check(t.Context(), time.Now(), f.lease.URL)
	if f.partsFixture.gate.CancelFetch(cl); err != nil {
		if !errors.Is(err, decorum.Pending) {
			t.Fatal(err)
		}
		n.lookup = 1
	}
	if permit, ok := requestPermit(f.other, "a.test"); ok {
		f.other.ReleaseUnused(time.Now(), permit)
	} else {
		n.hostSlot = 1
	}
	neighbour := mustPermit(t, f.other, "b.test")
	if neighbour.ClaimServerAddr(time.Now(), f.addr) != nil {
		n.addrSlot = 1
	}
	f.other.ReleaseUnused(time.Now(), neighbour)
	f.other.LeaveSharedHosts(time.Now()) // it no longer waits for a turn
	return n
}

// checkHeld fails the test unless the visit holds exactly want.
func (f *visitFixture) checkHeld(t *testing.T, when string, want heldCount) {
	t.Helper()
	if got := f.held(t); got != want {
		t.Errorf("%s the visit holds %+v, want %+v", when, got, want)
	}
}

// TestAbortGivesBackAtOnce: permit, page and lookup are free when abort returns; lease, host and
// the lookup of a tdmrep.json when release returns, in this order also without a call of abort.
func TestAbortGivesBackAtOnce(t *testing.T) {
	for _, isRobots := range []bool{false, true} {
		for _, aborted := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				f := newVisitFixture(t, isRobots)
				all := heldCount{lease: 1, host: 1, tdmrep: 1, page: 1, coordinated: 1, hostSlot: 1, addrSlot: 1}
				if isRobots {
					all.page, all.coordinated, all.lookup = 0, 0, 1
				}
				f.checkHeld(t, "under way", all)
				if aborted {
					f.abort()
					f.checkHeld(t, "aborted", heldCount{lease: 1, host: 1, tdmrep: 1})
					f.abort()
					f.checkHeld(t, "aborted twice", heldCount{lease: 1, host: 1, tdmrep: 1})
				}
				f.release()
				f.checkHeld(t, "released", heldCount{})
			})
		}
	}
}

// TestFinishGivesBackTheAddress: when finish returns, the server's address is free for another
// host; the page stays counted, and the lookup is left to the gate. A later abort changes nothing.
func TestFinishGivesBackTheAddress(t *testing.T) {
	for _, isRobots := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newVisitFixture(t, isRobots)
			sent := heldCount{lease: 1, host: 1, tdmrep: 1, page: 1, coordinated: 1, hostSlot: 1}
			if isRobots {
				sent.page, sent.coordinated, sent.lookup = 0, 0, 1
			}
			f.finish(time.Now())
			f.checkHeld(t, "finished", sent)
			f.abort()
			f.checkHeld(t, "finished and aborted", sent)
			f.release()
			sent.lease, sent.host, sent.tdmrep = 0, 0, 0
			f.checkHeld(t, "finished and released", sent)
		})
	}
}

// TestUncountPageCountsOnce: a visit that will be repeated counts no page, whatever ends it.
func TestUncountPageCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newVisitFixture(t, false)
		f.uncountPage()
		f.checkHeld(t, "not counted", heldCount{lease: 1, host: 1, tdmrep: 1, hostSlot: 1, addrSlot: 1})
		f.uncountPage()
		f.abort()
		f.release()
		f.checkHeld(t, "released", heldCount{})
	})
}

// TestVisitWithoutClearanceIsReleased: a lease whose URL was not cleared is returned.
func TestVisitWithoutClearanceIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartsFixture(t)
		lv := leasedVisit{leasedVisitConfig: leasedVisitConfig{activeLeases: &activeLeases{}, hosts: p.newHostTable(),
			tdmrepCache: &tdmrepCache{},
			gate:        p.gate, limiter: p.limiter, budget: &runBudget{}, now: time.Now}}
		ctx := lv.take(t.Context(), p.leaseURL(t, "http://a.test/"))
		if ctx.Err() != nil || len(lv.activeLeases.all()) != 1 || lv.hosts.hosts["a.test"].leaseCount != 1 {
			t.Errorf("the lease is not active: %v, %d, %+v", ctx.Err(), len(lv.activeLeases.all()), lv.hosts.hosts)
		}
		lv.release()
		if ctx.Err() == nil || len(lv.activeLeases.all()) != 0 || lv.hosts.hosts["a.test"].leaseCount != 0 {
			t.Errorf("the lease is still active: %v, %d, %+v", ctx.Err(), len(lv.activeLeases.all()), lv.hosts.hosts)
		}
	})
}
