package crawler_test

import (
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// An unvisitedLease is a reason why a leased URL is not visited.
type unvisitedLease struct {
	name    string
	kind    crawler.VisitKind // the target of the trial; a robots.txt or a tdmrep.json may come before the page
	file    string            // content of the file that comes before the page; empty: the usual one
	arrange func(*visitTrial) // called before the crawl begins; nil: nothing
	visits  int               // visits before that step
	before  func(*visitTrial) // called before the step that makes no visit; nil: nothing
	after   func(*visitTrial) // called after that step; nil: nothing
	outcome storage.AckOutcome
	err     error // error of that step
	want    heldAfterVisit
}

// discover queues an entry.
func discover(tr *visitTrial, url string, e storage.Entry) {
	u, err := decorum.ParseURL(url)
	if err == nil {
		e.URL = u
		_, err = tr.crawl.Frontier.Discover(tr.t.Context(), e)
	}
	if err != nil {
		tr.t.Fatal(err)
	}
}

// unvisitedLeases returns all reasons.
func unvisitedLeases() []unvisitedLease {
	busy := decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses,
		Until: time.Now().Add(time.Minute)}.Err()
	brake := func(b politeness.Brake) func(*visitTrial) {
		return func(tr *visitTrial) {
			if b.Host = trialHost; tr.crawl.Brakes.Set(b) != nil {
				tr.t.Error("the brake makes no sense")
			}
		}
	}
	settings := func(change func(*crawler.Settings)) func(*visitTrial) {
		return func(tr *visitTrial) { change(&tr.crawl.Settings) }
	}
	var taken politeness.Permit
	return []unvisitedLease{
		{name: "robots.txt disallows it", file: "User-agent: *\nDisallow: /\n", visits: 1, outcome: storage.Park},
		{name: "tdmrep.json reserves it", kind: crawler.TDMRepVisit, file: `[{"location": "/", "tdm-reservation": 1}]`,
			visits: 2, outcome: storage.Park},
		{name: "the refusal cannot be written", file: "User-agent: *\nDisallow: /\n", visits: 1,
			before: failAt(stepLedgerRefusal, errInjected), outcome: storage.Requeue, err: errInjected},
		{name: "the robots.txt cannot be kept", visits: 1, before: failAt(stepLedgerFile, errInjected),
			outcome: storage.Requeue, err: errInjected},
		{name: "what robots.txt leads to cannot be noted", visits: 1, before: failAt(stepSetNote, errInjected),
			outcome: storage.Requeue, err: errInjected},
		{name: "parked URLs cannot be queued", visits: 1, before: failAt(stepUnpark, errInjected),
			outcome: storage.Requeue, err: errInjected},
		{name: "out of scope", visits: 1, outcome: storage.Park, before: func(tr *visitTrial) {
			scope := frontier.NewScope(frontier.ScopeConfig{Exclude: []*regexp.Regexp{regexp.MustCompile("a.test")}},
				nil)
			tr.crawl.Frontier = frontier.New(tr.crawl.Frontier.Store(), frontier.Config{Scope: scope})
			if err := tr.crawl.Prepare(); err != nil {
				tr.t.Error(err)
			}
		}},
		{name: "another looks up the robots.txt", outcome: storage.Requeue, want: heldAfterVisit{robotsLookedUp: true},
			before: func(tr *visitTrial) {
				u, _ := decorum.ParseURL("http://a.test/")
				if _, err := tr.crawl.Gate.Check(tr.t.Context(), time.Now(), u); err != nil {
					tr.t.Error(err)
				}
			}},
		{name: "outside its hours", file: "User-agent: *\nVisit-time: 0600-0700\n",
			visits: 1, outcome: storage.Requeue},
		{name: "cleaned", file: "User-agent: *\nClean-param: x\n", visits: 1, outcome: storage.Drop,
			arrange: func(tr *visitTrial) { tr.seed = "http://a.test/?x=1" }},
		{name: "look at an old robots.txt", visits: 2, outcome: storage.Done, before: func(tr *visitTrial) {
			discover(tr, "http://a.test/robots.txt", storage.Entry{Source: storage.SourcePrerequisite})
		}},
		{name: "redirect of a robots.txt without a waiting origin", visits: 1, outcome: storage.Drop,
			before: func(tr *visitTrial) {
				u, _ := decorum.ParseURL("http://a.test/")
				discover(tr, "http://a.test/rules.txt",
					storage.Entry{Source: storage.SourcePrerequisite, RobotsFor: u.Origin()})
			}},
		{name: "dry run", arrange: settings(func(s *crawler.Settings) {
			s.DryRun = true
		}), visits: 1, outcome: storage.Done},
		{name: "the host has used up its pages", arrange: settings(func(s *crawler.Settings) {
			s.MaxPagesPerHost = 1
		}), visits: 2, outcome: storage.RetryAt},
		{name: "the host has sent its bytes", arrange: settings(func(s *crawler.Settings) {
			s.MaxBytesPerHost = 1
		}), visits: 1, outcome: storage.RetryAt},
		{name: "the run has received its bytes", arrange: settings(func(s *crawler.Settings) {
			s.MaxReceivedBytes = 1
		}), visits: 1,
			outcome: storage.Requeue, err: crawler.ErrBytes},
		// The page beyond the limit stays counted: the run is over.
		{name: "the run has used up its pages", arrange: settings(func(s *crawler.Settings) {
			s.MaxPages = 1
		}), visits: 2,
			outcome: storage.Requeue, err: crawler.ErrPages, want: heldAfterVisit{pages: 1}},
		{name: "all processes have used up their pages", visits: 1,
			before:  failAt(stepPageCounted, crawler.PageLimitDecision().Err()),
			outcome: storage.Requeue, err: crawler.ErrPages},
		{name: "all processes have used up their pages for now", visits: 1,
			before: failAt(stepPageCounted, busy), outcome: storage.Requeue},
		{name: "other processes cannot be asked", visits: 1,
			before: failAt(stepCheckVisit, busy), outcome: storage.Requeue},
		{name: "a brake stops it", visits: 1, before: brake(politeness.Brake{Stop: true}), outcome: storage.Requeue},
		{name: "a brake slows it", visits: 1,
			before: brake(politeness.Brake{Delay: time.Hour}), outcome: storage.Requeue},
		{name: "a brake stops it, and it cannot be held", visits: 1, outcome: storage.Requeue, err: errInjected,
			before: func(tr *visitTrial) {
				brake(politeness.Brake{Stop: true})(tr)
				failAt(stepHold, errInjected)(tr)
			}},
		{name: "another crawl visits the host", visits: 1, outcome: storage.Requeue,
			before: func(tr *visitTrial) {
				permit, d := tr.other.Reserve(time.Now().Add(time.Hour), trialHost,
					politeness.PermitRequest{HostSlots: 1})
				if taken = permit; d.Action != decorum.Proceed {
					tr.t.Error(d.Err())
				}
			},
			after: func(tr *visitTrial) { tr.other.ReleaseUnused(time.Now(), taken) }},
	}
}

// TestEveryLeaseWithoutAVisitGivesBackEverything: whatever the reason, a leased URL that is not
// visited causes no request, and all its resources are free when its lease is acked.
func TestEveryLeaseWithoutAVisitGivesBackEverything(t *testing.T) {
	for i, lease := range unvisitedLeases() {
		t.Run(lease.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testUnvisitedLease(t, unvisitedLeases()[i]) })
		})
	}
}

func testUnvisitedLease(t *testing.T, lease unvisitedLease) {
	answer := crawltest.Text("User-agent: *\n")
	if lease.kind == crawler.PageVisit {
		lease.kind = crawler.RobotsVisit
	}
	if lease.file != "" {
		answer.Body = lease.file
	}
	tr := newVisitTrial(t, lease.kind, answer)
	if lease.arrange != nil {
		lease.arrange(tr)
	}
	var acks []storage.Ack
	tr.crawl.Hooks.Acked = func(a storage.Ack) { acks = append(acks, a) }
	tr.start()
	for range lease.visits {
		if err := tr.step(); err != nil {
			t.Fatal(err)
		}
	}
	requests := func() int { return len(tr.web.Log()) + len(tr.faulty.Log()) }
	if n := requests(); n != lease.visits {
		t.Errorf("%d requests in %d visits", n, lease.visits)
	}
	if lease.before != nil {
		lease.before(tr)
	}
	tr.underWay = true
	arranged := len(tr.steps)
	if err := tr.step(); !errors.Is(err, lease.err) || lease.err == nil && err != nil {
		t.Errorf("the step ends with %v, want %v", err, lease.err)
	}
	tr.underWay = false
	if tr.fired != arranged {
		t.Errorf("of %d steps that are arranged %d happened", arranged, tr.fired)
	}
	if n := requests(); n != lease.visits {
		t.Errorf("%d requests were made", n-lease.visits)
	}
	if last := acks[len(acks)-1]; len(acks) != lease.visits+1 || last.Outcome != lease.outcome {
		t.Errorf("%d acks, the last with outcome %d, want %d with %d", len(acks), last.Outcome,
			lease.visits+1, lease.outcome)
	}
	if lease.after != nil {
		lease.after(tr)
	}
	if got := tr.held(tr.pages); got != lease.want {
		t.Errorf("the crawl holds %+v, want %+v", got, lease.want)
	}
}
