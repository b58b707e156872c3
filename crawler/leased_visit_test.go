package crawler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// visitHolds is what the target visit of a trial holds at one moment.
type visitHolds struct {
	lease, host int  // in use
	pages       int  // counted
	hostTaken   bool // by a permit, or because the host rests
	addrTaken   bool
	lookedUp    bool // the robots.txt of the visit is being looked up
}

// holds returns what the visit holds now.
func (tr *visitTrial) holds() (h visitHolds) {
	tr.t.Helper()
	now := time.Now()
	h.lease, h.host, h.pages = len(tr.crawl.ListActiveVisits()),
		tr.crawl.CountHeldResources().HostLeases, int(tr.crawl.PagesBegun())
	permit, d := tr.other.Reserve(now, trialHost, politeness.PermitRequest{HostSlots: 1})
	if h.hostTaken = d.Action != decorum.Proceed; !h.hostTaken {
		tr.other.ReleaseUnused(now, permit)
	}
	neighbour, d := tr.other.Reserve(now, "neighbour.test", politeness.PermitRequest{HostSlots: 1})
	if d.Action != decorum.Proceed {
		tr.t.Fatal(d.Err())
	}
	h.addrTaken = neighbour.ClaimServerAddr(now, oneAddress("")) != nil
	tr.other.ReleaseUnused(now, neighbour)
	tr.other.LeaveSharedHosts(now) // it no longer waits for a turn
	h.lookedUp = tr.isRobotsLookedUp()
	return h
}

// pagesBefore is how many pages a trial visits before a visit of a kind.
var pagesBefore = map[crawler.VisitKind]int{crawler.FeedVisit: 1, crawler.SitemapVisit: 1}

// TestMomentsOfAVisit: permit and address are held while the request is in flight; the address is
// free as soon as the answer is there, before it is archived and handled; the host rests from its
// end; lease and host are returned after the ack.
func TestMomentsOfAVisit(t *testing.T) {
	underWay := visitHolds{lease: 1, host: 1, pages: 1, hostTaken: true, addrTaken: true}
	answered := visitHolds{lease: 1, host: 1, pages: 1, hostTaken: true}
	for kind, name := range visitKinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newVisitTrial(t, kind, answerOfKind(kind))
				want := map[trialStep]visitHolds{stepRequest: underWay, stepLedgerResponse: underWay,
					stepArchive: answered, stepAck: answered}
				if kind.IsPage() {
					want[stepHandler], want[stepRecorder] = answered, answered
				}
				for step, wanted := range want {
					tr.steps[step] = func(context.Context) error {
						if !kind.IsPage() {
							wanted.pages = 0
						}
						wanted.pages += pagesBefore[kind]
						wanted.lookedUp = kind.IsRobots() && step != stepAck
						if got := tr.holds(); got != wanted {
							t.Errorf("%s: the visit holds %+v, want %+v", step, got, wanted)
						}
						return nil
					}
				}
				acked := false
				tr.crawl.Hooks.Acked = func(storage.Ack) {
					if !tr.underWay {
						return
					}
					acked = true
					if h := tr.holds(); h.lease != 1 || h.host != 1 {
						t.Errorf("when it is acked the visit holds %+v, want lease and host", h)
					}
				}
				tr.start()
				if err := tr.visitTarget(); err != nil {
					t.Error(err)
				}
				if tr.fired != len(want) || !acked {
					t.Errorf("%d moments were looked at, want %d; acked: %t", tr.fired, len(want), acked)
				}
				if h := tr.holds(); h.lease != 0 || h.host != 0 {
					t.Errorf("when all is over the visit holds %+v", h)
				}
			})
		})
	}
}

// TestAVisitIsAbortedBeforeItsURLIsPutOff: when Hooks.VisitRefused reports that a visit was not
// made, its permit, page and lookup are already free for the next visit.
func TestAVisitIsAbortedBeforeItsURLIsPutOff(t *testing.T) {
	for kind, name := range visitKinds {
		for why, arrange := range map[string]func(*visitTrial){
			"busy address": busyAddress, "brake": brakeAt(stepConnect)} {
			t.Run(name+"/"+why, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tr := newVisitTrial(t, kind, answerOfKind(kind))
					arrange(tr)
					told := false
					tr.crawl.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) {
						want := visitHolds{lease: 1, host: 1, pages: pagesBefore[kind]}
						if got := tr.holds(); got != want {
							t.Errorf("the visit holds %+v, want %+v", got, want)
						}
						told = true
					}
					tr.start()
					if err := tr.visitTarget(); err != nil || !told {
						t.Errorf("error %v; VisitRefused was called: %t", err, told)
					}
				})
			})
		}
	}
}

// TestARefusedPermitIsGivenBackBeforeItsURLIsPutOff: the same if the visit is refused after its
// permit was issued, because the budget has no page left, and if the permit for a robots.txt is
// refused.
func TestARefusedPermitIsGivenBackBeforeItsURLIsPutOff(t *testing.T) {
	for kind, step := range map[crawler.VisitKind]trialStep{crawler.PageVisit: stepPageCounted,
		crawler.RobotsVisit: stepCheckVisit} {
		t.Run(visitKinds[kind], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := newVisitTrial(t, kind, answerOfKind(kind))
				told := false
				tr.crawl.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) {
					if got, want := tr.holds(), (visitHolds{lease: 1, host: 1}); got != want {
						t.Errorf("the visit holds %+v, want %+v", got, want)
					}
					told = true
				}
				tr.start()
				if kind == crawler.PageVisit {
					if err := tr.step(); err != nil { // its robots.txt
						t.Fatal(err)
					}
				}
				tr.underWay = true
				failAt(step, decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses,
					Until: time.Now().Add(time.Minute)}.Err())(tr)
				if err := tr.step(); err != nil || !told {
					t.Errorf("error %v; VisitRefused was called: %t", err, told)
				}
			})
		})
	}
}
