package crawler_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// errInjected is the error of a step that a visitTrial makes fail.
var errInjected = errors.New("it fails, as the test wants")

// A trialStep is a moment in a visit at which a visitTrial can act.
type trialStep string

// The steps of a visit, in order, and then the calls of the store. A step whose function returns an
// error fails.
const (
	stepCheckVisit     trialStep = "other processes are asked"
	stepPageCounted    trialStep = "page is counted in the budget of all processes"
	stepFetch          trialStep = "fetcher is called"
	stepConnect        trialStep = "connection is there"
	stepSend           trialStep = "request may be sent"
	stepRequest        trialStep = "request is sent"
	stepFetched        trialStep = "fetcher returns"
	stepLedgerRefusal  trialStep = "ledger: refusal"
	stepLedgerFile     trialStep = "ledger: robots.txt"
	stepLedgerRequest  trialStep = "ledger: request"
	stepLedgerResponse trialStep = "ledger: response"
	stepArchive        trialStep = "archive"
	stepHandler        trialStep = "handler"
	stepRecorder       trialStep = "recorder"
	stepAdd            trialStep = "store: Add"
	stepAck            trialStep = "store: Ack"
	stepSetNote        trialStep = "store: SetNote"
	stepReadNote       trialStep = "store: ReadNote"
	stepHold           trialStep = "store: Hold"
	stepUnpark         trialStep = "store: UnparkMatchingURLs"
	stepMarkSent       trialStep = "store: MarkSent"
	stepFlush          trialStep = "store: Flush"
)

// A visitTrial is a crawl whose visit to one target goes as the test demands. It is the crawl's
// Fetcher, Ledger, Archive, Recorder, Coordinator and Handler. Make it with newVisitTrial, and
// change its fields before start.
type visitTrial struct {
	t          *testing.T
	targetKind crawler.VisitKind // kind of the target visit
	answer     crawltest.Response
	leaseTTL   time.Duration
	steps      map[trialStep]func(context.Context) error // called in the target visit, once at each step
	seed       string                                    // the first URL of the crawl; empty: none

	crawl    *crawler.Crawler
	other    *politeness.Limiter // of another crawl that visits the same hosts
	bodies   *bodymem.Budget
	busyAddr netip.Addr // address of the target visit; zero: that of the other visits
	web      *crawltest.Web
	faulty   *crawltest.Web // answers the target visit
	onStep   func(step trialStep, what string)
	cancel   context.CancelFunc // halts the step of the crawl

	underWay      bool                    // the target visit is in progress
	fired         int                     // steps that were called
	pages         int                     // calls of Fetch for pages
	unreleased    map[crawler.Ticket]bool // tickets of Fetch for which ReleaseVisitResources was not called
	budget        int                     // pages that all processes count
	begunHere     bool                    // the target visit has begun
	sentPages     int                     // requests for pages that were sent
	begunAt       time.Time               // when the target visit began
	startsCounted bool                    // the visit begins when its page is counted, not when the fetcher is called
}

const trialHost = "a.test"

// newVisitTrial returns a trial of a visit of a kind to which the server gives an answer.
func newVisitTrial(t *testing.T, kind crawler.VisitKind, answer crawltest.Response) *visitTrial {
	t.Helper()
	bodies, err := bodymem.New(bodymem.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	shared := politeness.NewSharedHosts()
	limits := politeness.LimiterConfig{IPConcurrency: 1}
	return &visitTrial{
		t: t, targetKind: kind, answer: answer, seed: "http://" + trialHost + "/",
		steps: map[trialStep]func(context.Context) error{}, unreleased: map[crawler.Ticket]bool{},
		bodies: bodies, other: shared.NewLimiter(limits),
		crawl: &crawler.Crawler{Limiter: shared.NewLimiter(limits), Brakes: &politeness.Brakes{}},
	}
}

// target returns the URL of the target visit.
func (tr *visitTrial) target() string {
	return "http://" + trialHost + map[crawler.VisitKind]string{
		crawler.PageVisit: "/", crawler.FeedVisit: "/feed", crawler.SitemapVisit: "/map.xml",
		crawler.RobotsVisit:         "/robots.txt",
		crawler.RobotsRedirectVisit: "/rules.txt", crawler.TDMRepVisit: tdmrepPath}[tr.targetKind]
}

// start builds the crawl and its webs.
func (tr *visitTrial) start() {
	tr.t.Helper()
	rules := "User-agent: *\nDisallow: /closed\n"
	if tr.targetKind == crawler.SitemapVisit {
		rules += "Sitemap: " + tr.target() + "\n"
	}
	robotsTXT := crawltest.Text(rules)
	if tr.targetKind == crawler.RobotsRedirectVisit {
		robotsTXT = crawltest.Redirect(http.StatusFound, "/rules.txt")
	}
	tr.web = crawltest.New(crawltest.Site{Host: trialHost,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: robotsTXT}),
		Pages: map[string]crawltest.PageFunc{
			"/":          crawltest.StaticPage(pageWithFeeds("<a href=/linked>linked</a>", "/feed")),
			"/rules.txt": crawltest.StaticPage(crawltest.Text(rules)),
		}, Fallback: pageWithLinks()})
	tr.faulty = crawltest.New(crawltest.Site{Host: trialHost, Fallback: crawltest.StaticPage(tr.answer),
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: tr.answer})})
	agent, err := robots.NewAgent("testbot")
	if err != nil {
		tr.t.Fatal(err)
	}
	gateConfig := gate.Config{Agent: agent}
	if tr.targetKind == crawler.TDMRepVisit {
		gateConfig.Purposes = []string{"ai-train"}
	}
	store, c := trialStore{newMemoryStore(), tr}, tr.crawl
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter, LeaseTTL: tr.leaseTTL})
	c.Gate = gate.New(gateConfig, store)
	c.Policy.JitterFunc = func() float64 { return 0 }
	c.Fetcher, c.Ledger, c.Coordinator, c.Handler = tr, trialLedger{tr}, tr, tr.handle
	c.Archive, c.PageRecorder = trialRecorder{tr, stepArchive}, trialRecorder{tr, stepRecorder}
	c.Settings.RecordRefusalsInLedger, c.Log = true, newCrawl(tr.t, tr.web, newMemoryStore()).Log
	if tr.seed != "" {
		addSeeds(tr.t, c, tr.seed)
	}
	if err := c.Prepare(); err != nil {
		tr.t.Fatal(err)
	}
}

// visitTarget takes URLs through the pipeline until the target visit is over, and returns the error
// of its step.
func (tr *visitTrial) visitTarget() error {
	tr.t.Helper()
	defer tr.crawl.WatchBrakes()()
	for range 10 {
		err := tr.step()
		if tr.underWay {
			tr.underWay = false
			return err
		}
		if err != nil {
			tr.t.Fatalf("before the visit: %v", err)
		}
	}
	tr.t.Fatalf("%s was not visited; requests: %v", tr.target(), tr.web.Log())
	return nil
}

// step takes the next URL through the pipeline. It waits at most a day for one that is due.
func (tr *visitTrial) step() error {
	ctx, cancel := context.WithTimeout(tr.t.Context(), 24*time.Hour)
	defer cancel()
	tr.cancel = cancel
	return tr.crawl.Step(ctx)
}

// do calls the function of a step of the target visit.
func (tr *visitTrial) do(ctx context.Context, step trialStep, what string) error {
	if tr.onStep != nil {
		tr.onStep(step, what)
	}
	act := tr.steps[step]
	if !tr.underWay || act == nil {
		return nil
	}
	delete(tr.steps, step)
	tr.fired++
	return act(ctx)
}

// Fetch implements crawler.Fetcher, with every call that its contract requires.
func (tr *visitTrial) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	tr.unreleased[t] = true
	if t.Kind().IsPage() {
		tr.pages++
	}
	isTarget := t.URL().String() == tr.target() && !tr.begunHere
	if isTarget {
		tr.underWay, tr.begunHere, tr.begunAt = true, true, time.Now()
		if t.Kind() != tr.targetKind {
			tr.t.Errorf("the visit to %s is of kind %d, want %d", t.URL(), t.Kind(), tr.targetKind)
		}
	}
	if err := tr.do(ctx, stepFetch, t.URL().String()); err != nil {
		return nil, crawler.NewFetchError(t, err)
	}
	res, err := tr.exchange(ctx, t, isTarget)
	if stepErr := tr.do(ctx, stepFetched, t.URL().String()); stepErr != nil {
		res, err = nil, stepErr
	}
	if err != nil {
		return nil, crawler.NewFetchError(t, err)
	}
	return res, nil
}

// exchange makes the request of a ticket.
func (tr *visitTrial) exchange(ctx context.Context, t crawler.Ticket, isTarget bool) (*decorum.Response, error) {
	url := t.URL().String()
	if err := t.Redeem(url); err != nil {
		return nil, err
	}
	if err := tr.do(ctx, stepConnect, url); err != nil {
		return nil, err
	}
	addr, web := oneAddress(""), tr.web
	if isTarget && tr.busyAddr.IsValid() {
		addr = tr.busyAddr
	}
	if isTarget {
		web = tr.faulty
	}
	if err := t.ClaimServerAddr(addr); err != nil {
		return nil, err
	}
	if err := tr.do(ctx, stepSend, url); err != nil {
		return nil, err
	}
	if err := t.RecordSend(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if t.Kind().IsPage() {
		tr.sentPages++
	}
	if err := tr.do(ctx, stepRequest, url); err != nil {
		return nil, err
	}
	return tr.roundTrip(ctx, t, web)
}

// roundTrip sends the request of a ticket to a web, and reads the answer into charged memory.
func (tr *visitTrial) roundTrip(ctx context.Context, t crawler.Ticket, web *crawltest.Web) (*decorum.Response, error) {
	timeoutCtx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(timeoutCtx, t.Request().MethodOrGet(),
		t.URL().String(), t.Request().BodyReader())
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "testbot/1.0 (+https://bot.test/)")
	share, start := &bodymem.VisitShare{}, time.Now()
	tr.bodies.OpenShare(share, t.URL().String())
	body, header, status, err := readAnswer(timeoutCtx, web, req, share)
	if err != nil {
		share.Close()
		return nil, errors.Join(context.Cause(ctx), err)
	}
	t.RetainBodyMemoryForVisit(share)
	return &decorum.Response{URL: t.URL(), Status: status, Header: header, Body: body, Start: start, End: time.Now()},
		nil
}

// readAnswer returns the answer to a request, and charges its body to share.
func readAnswer(ctx context.Context, web *crawltest.Web, req *http.Request,
	share *bodymem.VisitShare) ([]byte, http.Header, int, error) {
	res, err := web.RoundTrip(req)
	if err != nil {
		return nil, nil, 0, err
	}
	defer res.Body.Close()
	body, _, err := share.ReadAll(ctx, res.Body, 1<<20, res.ContentLength, nil)
	if err == nil && res.ContentLength > int64(len(body)) {
		err = io.ErrUnexpectedEOF
	}
	return body, res.Header, res.StatusCode, err
}

// ReleaseVisitResources implements crawler.VisitResourceReleaser.
func (tr *visitTrial) ReleaseVisitResources(t crawler.Ticket) { delete(tr.unreleased, t) }

// CheckVisit implements crawler.Coordinator.
func (tr *visitTrial) CheckVisit(time.Time) decorum.Decision {
	d, _ := decorum.DecisionOf(tr.do(tr.t.Context(), stepCheckVisit, ""))
	return d
}

// AcquireCrawlPageBudget implements crawler.Coordinator.
func (tr *visitTrial) AcquireCrawlPageBudget() decorum.Decision {
	tr.underWay = tr.underWay || tr.startsCounted && tr.targetKind == crawler.PageVisit
	d, _ := decorum.DecisionOf(tr.do(tr.t.Context(), stepPageCounted, ""))
	if d.Action == decorum.Proceed {
		tr.budget++
	}
	return d
}

// ReleaseCrawlPageBudget implements crawler.Coordinator.
func (tr *visitTrial) ReleaseCrawlPageBudget() { tr.budget-- }

// AddBodyBytes implements crawler.Coordinator.
func (tr *visitTrial) AddBodyBytes(int64) {}

// handle is the Handler: LinksToFollow, and what the test adds.
func (tr *visitTrial) handle(ctx context.Context, v *crawler.Visit) ([]crawler.LinkToVisit, error) {
	if err := tr.do(ctx, stepHandler, v.URL().String()); err != nil {
		return nil, err
	}
	return tr.crawl.LinksToFollow(ctx, v)
}

// A trialLedger is the Ledger of a trial. It only remembers which files were stored.
type trialLedger struct{ tr *visitTrial }

func (l trialLedger) Append(ctx context.Context, r *ledger.Record) (int64, error) {
	switch {
	case r.Request != nil:
		return 1, l.tr.do(ctx, stepLedgerRequest, r.Request.URL)
	case r.Response != nil:
		return 1, l.tr.do(ctx, stepLedgerResponse, "")
	}
	return 1, l.tr.do(ctx, stepLedgerRefusal, r.Refusal.URL)
}

func (l trialLedger) HasRobotsFile(string) bool { return false }

func (l trialLedger) StoreRobotsFile(ctx context.Context, _ string, _ []byte) error {
	return l.tr.do(ctx, stepLedgerFile, "")
}

// A trialRecorder is a Recorder of a trial.
type trialRecorder struct {
	tr   *visitTrial
	step trialStep
}

func (r trialRecorder) Record(ctx context.Context, v *crawler.Visit) error {
	return r.tr.do(ctx, r.step, v.URL().String())
}

// A trialStore is the Store of a trial.
type trialStore struct {
	storage.Store
	tr *visitTrial
}

func (s trialStore) Add(ctx context.Context, es []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	for _, e := range es {
		if err := s.tr.do(ctx, stepAdd, e.URL.String()); err != nil {
			return nil, err
		}
	}
	return s.Store.Add(ctx, es, maxPerOrigin)
}

func (s trialStore) Ack(ctx context.Context, acks []storage.Ack) error {
	for _, a := range acks {
		if err := s.tr.do(ctx, stepAck, a.Lease.URL.String()); err != nil {
			return err
		}
	}
	return s.Store.Ack(ctx, acks)
}

func (s trialStore) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if err := s.tr.do(ctx, stepSetNote, key); err != nil {
		return err
	}
	return s.Store.SetNote(ctx, o, key, value)
}

func (s trialStore) ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	if err := s.tr.do(ctx, stepReadNote, key); err != nil {
		return nil, err
	}
	return s.Store.ReadNote(ctx, o, key)
}

func (s trialStore) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	if err := s.tr.do(ctx, stepHold, o.String()); err != nil {
		return err
	}
	return s.Store.Hold(ctx, o, until, suspended)
}

func (s trialStore) UnparkMatchingURLs(ctx context.Context, o decorum.Origin,
	shouldUnpark func(storage.Entry) bool) (int, error) {
	if err := s.tr.do(ctx, stepUnpark, o.String()); err != nil {
		return 0, err
	}
	return s.Store.UnparkMatchingURLs(ctx, o, shouldUnpark)
}

func (s trialStore) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	if err := s.tr.do(ctx, stepMarkSent, l.URL.String()); err != nil {
		return err
	}
	return s.Store.MarkSent(ctx, l, sent)
}

func (s trialStore) Flush(ctx context.Context) error {
	if err := s.tr.do(ctx, stepFlush, ""); err != nil {
		return err
	}
	return s.Store.Flush(ctx)
}

// heldAfterVisit is what a crawl holds between two visits; the zero value is nothing.
type heldAfterVisit struct {
	activeVisits   int                   // as ListActiveVisits returns them
	parts          crawler.HeldResources // as CountHeldResources counts them
	permits        int                   // permits not returned
	hostTaken      bool                  // another crawl gets no permit for the host
	addrTaken      bool                  // another crawl may not connect to the address
	robotsLookedUp bool                  // the gate waits for the answer to a robots.txt
	bodyBytes      int64                 // memory charged for bodies
	fetcherHolds   int                   // visits without a call of ReleaseVisitResources
	storeLeases    int                   // leases in the store
	pages          int                   // pages in the run's budget, beyond those that count
	coordinated    int                   // likewise, in the budget of all processes
}

// held returns what the crawl holds beyond wantPages counted pages. Call it once, at the end.
func (tr *visitTrial) held(wantPages int) (n heldAfterVisit) {
	tr.t.Helper()
	c, later := tr.crawl, time.Now().Add(48*time.Hour) // later is when the host is due
	n.activeVisits, n.parts = len(c.ListActiveVisits()), c.CountHeldResources()
	n.bodyBytes, n.fetcherHolds = tr.bodies.Usage().Bytes, len(tr.unreleased)
	n.pages, n.coordinated = int(c.PagesBegun())-wantPages, tr.budget-wantPages
	if err := c.Frontier.ReturnUnusedLeases(tr.t.Context()); err != nil {
		tr.t.Fatal(err)
	}
	counts, err := countsOf(c.Frontier.Store().(trialStore).Store)
	if err != nil {
		tr.t.Fatal(err)
	}
	n.storeLeases = counts.LeasedURLs
	n.robotsLookedUp = tr.isRobotsLookedUp()
	// After an overload the limiter allows one visit at a time, so the rest of its count is what is
	// in flight.
	c.Limiter.LocalOverloadLimiter().RecordOverload(later, later)
	left, _ := c.Limiter.AvailableVisits(later, 2)
	n.permits = 1 - left
	permit, d := tr.other.Reserve(later, trialHost, politeness.PermitRequest{HostSlots: 1})
	if n.hostTaken = d.Action != decorum.Proceed; !n.hostTaken {
		n.addrTaken = permit.ClaimServerAddr(later, oneAddress("")) != nil
	}
	return n
}

// isRobotsLookedUp reports whether the gate waits for the answer to the robots.txt of the origin.
func (tr *visitTrial) isRobotsLookedUp() bool {
	tr.t.Helper()
	target, err := decorum.ParseURL(tr.target())
	if err != nil {
		tr.t.Fatal(err)
	}
	cl, err := tr.crawl.Gate.Check(tr.t.Context(), time.Now(), target)
	tr.crawl.Gate.CancelFetch(cl)
	postponed, ok := errors.AsType[*gate.OriginPostponedError](err)
	return ok && postponed.Reason == "robots.txt is being fetched"
}
