package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/politeness"
)

// visitKinds are the kinds of visits that make requests.
var visitKinds = map[crawler.VisitKind]string{
	crawler.PageVisit: "page", crawler.FeedVisit: "feed", crawler.SitemapVisit: "sitemap",
	crawler.RobotsVisit:         "robots.txt",
	crawler.RobotsRedirectVisit: "redirect of robots.txt", crawler.TDMRepVisit: "tdmrep.json",
}

// kindSet returns a set of kinds.
func kindSet(kinds ...crawler.VisitKind) map[crawler.VisitKind]bool {
	set := map[crawler.VisitKind]bool{}
	for _, k := range kinds {
		set[k] = true
	}
	return set
}

// A visitOutcome is a way in which a visit may end.
type visitOutcome struct {
	name string
	// the answer to the request, given its usual body; nil: 200 and the body
	answer    func(string) crawltest.Response
	arrange   func(*visitTrial)          // called before the crawl begins; nil: the visit succeeds
	kinds     map[crawler.VisitKind]bool // kinds of visits for which it is tried; nil: all
	uncounted bool                       // the page is not counted in the budget, because it is visited again
	// pages counted although no request was sent, less those not counted although one was
	unsent int
	atOnce bool // the visit takes no time, because arrange ends it
	stops  bool // the crawl ends
	want   func(crawler.VisitKind) heldAfterVisit
}

// failAt makes a step fail with an error.
func failAt(step trialStep, err error) func(*visitTrial) {
	return func(tr *visitTrial) { tr.steps[step] = func(context.Context) error { return err } }
}

// panicAt makes a step panic.
func panicAt(step trialStep) func(*visitTrial) {
	return func(tr *visitTrial) { tr.steps[step] = func(context.Context) error { panic("a bug of a callback") } }
}

// outliveLeaseAt makes the lease expire at a step.
func outliveLeaseAt(step trialStep) func(*visitTrial) {
	return func(tr *visitTrial) {
		tr.steps[step] = func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}
	}
}

// haltAt halts the crawl at a step.
func haltAt(step trialStep) func(*visitTrial) {
	return func(tr *visitTrial) { tr.steps[step] = func(context.Context) error { tr.cancel(); return nil } }
}

// brakeAt sets a brake that stops the host at a step.
func brakeAt(step trialStep) func(*visitTrial) {
	return func(tr *visitTrial) {
		tr.steps[step] = func(context.Context) error {
			return tr.crawl.Brakes.Set(politeness.Brake{Host: trialHost, Stop: true})
		}
	}
}

// statusAnswer returns answers with a status.
func statusAnswer(status int, header ...string) func(string) crawltest.Response {
	return func(string) crawltest.Response {
		a := crawltest.Status(status)
		for i := 0; i < len(header); i += 2 {
			a.Header.Set(header[i], header[i+1])
		}
		return a
	}
}

// faultAnswer returns answers with a fault.
func faultAnswer(f crawltest.ResponseFault) func(string) crawltest.Response {
	return func(body string) crawltest.Response {
		a := crawltest.HTML(body)
		a.Fault = f
		return a
	}
}

// dialError returns the error of a connection that could not be opened.
func dialError(errno syscall.Errno) error {
	addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(oneAddress(""), 80))
	return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError("connect", errno)}
}

// visitOutcomes returns all ways in which a visit may end.
func visitOutcomes() []visitOutcome {
	local := &decorum.Error{Op: "read", Kind: decorum.LocalFailure, Err: errors.New("no room for the body")}
	pages := kindSet(crawler.PageVisit, crawler.FeedVisit)
	lookups := kindSet(crawler.RobotsVisit, crawler.RobotsRedirectVisit, crawler.TDMRepVisit)
	stillLeased := func(crawler.VisitKind) heldAfterVisit { return heldAfterVisit{storeLeases: 1} }
	return []visitOutcome{
		{name: "200"},
		{name: "301", answer: func(string) crawltest.Response { return crawltest.Redirect(301, "/elsewhere") }},
		{name: "304", answer: statusAnswer(304)},
		{name: "404", answer: statusAnswer(404)},
		{name: "429 with Retry-After", answer: statusAnswer(http.StatusTooManyRequests, "Retry-After", "120")},
		{name: "500", answer: statusAnswer(500)},
		{name: "503", answer: statusAnswer(503)},
		{name: "timeout", answer: faultAnswer(crawltest.Hang)},
		{name: "reset", answer: faultAnswer(crawltest.Reset)},
		{name: "body is cut", answer: faultAnswer(crawltest.ShortBody)},
		{name: "body stalls", answer: faultAnswer(crawltest.StallBody)},
		{name: "connection is refused", unsent: 1, arrange: failAt(stepConnect, dialError(syscall.ECONNREFUSED))},
		{name: "no such host", unsent: 1,
			arrange: failAt(stepConnect, &net.DNSError{Err: "no such host", IsNotFound: true})},
		{name: "no file descriptors", arrange: failAt(stepConnect, dialError(syscall.EMFILE)), uncounted: true},
		{name: "fails on this machine, nothing sent", arrange: failAt(stepFetch, local), uncounted: true},
		{name: "fails on this machine, request sent", unsent: -1, arrange: failAt(stepFetched, local), uncounted: true},
		{name: "no memory for the body", arrange: failAt(stepFetch, &bodymem.FullError{}), uncounted: true},
		{name: "forbidden by a callback", unsent: 1,
			arrange: failAt(stepSend, &decorum.Error{Op: "send", Kind: decorum.Forbidden})},
		{name: "fetcher panics, nothing sent", unsent: 1, arrange: panicAt(stepFetch)},
		{name: "fetcher panics, connected", unsent: 1, arrange: panicAt(stepSend)},
		{name: "fetcher panics, request sent", arrange: panicAt(stepFetched)},
		{name: "address is busy", arrange: busyAddress, uncounted: true},
		{name: "brake before the request", arrange: func(tr *visitTrial) {
			tr.steps[stepPageCounted] = func(context.Context) error {
				return tr.crawl.Brakes.Set(politeness.Brake{Host: trialHost, Stop: true})
			}
			tr.startsCounted = true
		}, kinds: kindSet(crawler.PageVisit)},
		{name: "brake before the connection", arrange: brakeAt(stepConnect), uncounted: true},
		{name: "brake before the first byte", unsent: 1, arrange: brakeAt(stepSend), atOnce: true},
		{name: "brake while the answer comes", arrange: brakeAt(stepRequest),
			answer: faultAnswer(crawltest.StallBody), atOnce: true},
		// As with the second connection of ftp: the request was sent, so the host rests.
		{name: "other processes cannot be asked, request sent", arrange: failAt(stepFetched,
			decorum.Decision{Action: decorum.Postpone, Reason: decorum.ReasonOtherProcesses,
				Until: time.Now().Add(time.Minute)}.Err())},
		{name: "lease expires before the request", uncounted: true, arrange: outliveLeaseAt(stepFetch)},
		{name: "lease expires before the connection", uncounted: true, arrange: outliveLeaseAt(stepConnect)},
		{name: "lease expires before the answer", arrange: outliveLeaseAt(stepRequest)},
		{name: "lease expires while the answer comes", answer: faultAnswer(crawltest.StallBody),
			arrange: func(tr *visitTrial) { tr.leaseTTL = 10 * time.Second }},
		{name: "lease expires after the answer", arrange: outliveLeaseAt(stepFetched)},
		{name: "lease expires in the archive", arrange: outliveLeaseAt(stepArchive)},
		{name: "lease expires in the handler", arrange: outliveLeaseAt(stepHandler), kinds: pages},
		{name: "halted before the request", unsent: 1, arrange: haltAt(stepFetch)},
		{name: "halted while the answer comes", arrange: haltAt(stepRequest),
			answer: faultAnswer(crawltest.StallBody), atOnce: true},
		{name: "halted in the handler", arrange: haltAt(stepHandler), kinds: pages},
		{name: "handler panics", arrange: panicAt(stepHandler), kinds: pages},
		{name: "handler fails", arrange: failAt(stepHandler, errInjected), kinds: pages},
		{name: "handler drops the page", arrange: failAt(stepHandler, decorum.Drop("not wanted")), kinds: pages},
		{name: "handler wants it later", arrange: failAt(stepHandler, decorum.RetryAfter(time.Hour)), kinds: pages},
		{name: "ledger fails at the request", uncounted: true,
			arrange: failAt(stepLedgerRequest, errInjected), stops: true},
		{name: "ledger fails at the response", arrange: failAt(stepLedgerResponse, errInjected), stops: true},
		{name: "archive fails", arrange: failAt(stepArchive, errInjected), stops: true},
		{name: "recorder fails", arrange: failAt(stepRecorder, errInjected), stops: true, kinds: pages},
		{name: "store fails to add", arrange: failAt(stepAdd, errInjected), stops: true,
			kinds: kindSet(crawler.PageVisit, crawler.FeedVisit, crawler.SitemapVisit)},
		{name: "store fails to ack", arrange: failAt(stepAck, errInjected), stops: true, want: stillLeased},
		{name: "store fails to write a note", arrange: failAt(stepSetNote, errInjected), stops: true,
			kinds: kindSet(crawler.PageVisit, crawler.TDMRepVisit, crawler.RobotsVisit, crawler.RobotsRedirectVisit)},
		{name: "store fails to read a note", arrange: failAt(stepReadNote, errInjected), stops: true, kinds: lookups},
		{name: "store fails to hold", arrange: failAt(stepHold, errInjected), stops: true, kinds: lookups},
		{name: "store fails to unpark", arrange: failAt(stepUnpark, errInjected), stops: true,
			kinds: kindSet(crawler.TDMRepVisit)},
		{name: "store fails to flush", arrange: failAt(stepFlush, errInjected), stops: true,
			answer: statusAnswer(http.StatusServiceUnavailable, "Retry-After", "120")},
	}
}

// busyAddress leads the visit to an address that another crawl is visiting.
func busyAddress(tr *visitTrial) {
	tr.busyAddr = netip.MustParseAddr("93.184.216.35")
	now := time.Now()
	permit, d := tr.other.Reserve(now, "b.test", politeness.PermitRequest{HostSlots: 1})
	err := d.Err()
	if err == nil {
		err = permit.ClaimServerAddr(now, tr.busyAddr)
	}
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.steps[stepFetched] = func(context.Context) error { // the other visit is over by then
		tr.other.ReleaseUnused(time.Now(), permit)
		return nil
	}
}

// TestEveryVisitGivesBackEverything: whatever the kind of a visit and however it ends, all its
// resources are free when its lease is acked.
func TestEveryVisitGivesBackEverything(t *testing.T) {
	for kind, kindName := range visitKinds {
		for _, o := range visitOutcomes() {
			t.Run(fmt.Sprintf("%s/%s", kindName, o.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testOutcome(t, kind, o) })
			})
		}
	}
}

// answerOfKind returns the usual answer to a visit of a kind.
func answerOfKind(kind crawler.VisitKind) crawltest.Response {
	switch kind {
	case crawler.FeedVisit:
		return rssAnswer("application/rss+xml", "/listed")
	case crawler.SitemapVisit:
		return sitemapPage("urlset", "http://a.test/listed")(crawltest.PageRequest{})
	case crawler.RobotsVisit, crawler.RobotsRedirectVisit:
		return crawltest.Text("User-agent: *\nDisallow: /closed\n")
	case crawler.TDMRepVisit:
		return crawltest.ResponseOfType("application/json", `[{"location": "/closed/", "tdm-reservation": 1}]`)
	}
	return crawltest.HTML("<a href=/linked>linked</a>")
}

func testOutcome(t *testing.T, kind crawler.VisitKind, o visitOutcome) {
	answer := answerOfKind(kind)
	if o.answer != nil {
		answer = o.answer(answer.Body)
	}
	tr := newVisitTrial(t, kind, answer)
	if o.arrange != nil {
		o.arrange(tr)
	}
	arranged := len(tr.steps) > 0
	tr.start()
	err := tr.visitTarget()
	if took := time.Since(tr.begunAt); o.atOnce && took > 0 {
		t.Errorf("the visit took %v after it was ended", took)
	}
	if unsent := int(tr.crawl.PagesBegun()) - tr.sentPages; kind.IsPage() && unsent != o.unsent {
		t.Errorf("%d more pages count than were requested, want %d", unsent, o.unsent)
	}
	happens := arranged && (o.kinds == nil || o.kinds[kind])
	if happens != (tr.fired > 0) {
		t.Errorf("what is arranged happened %d times", tr.fired)
	}
	if stops := happens && o.stops; stops != (err != nil) || stops && !errors.Is(err, errInjected) {
		t.Errorf("the crawl ends with %v, want that it ends: %t", err, stops)
	}
	pages, want := tr.pages, heldAfterVisit{}
	if kind.IsPage() && o.uncounted {
		pages--
	}
	if happens && o.want != nil {
		want = o.want(kind)
	}
	if got := tr.held(pages); got != want {
		t.Errorf("the crawl holds %+v, want %+v", got, want)
	}
}
