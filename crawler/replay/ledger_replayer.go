package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A LedgerReplayer replays the first run of a ledger. The crawl that it replays must use its Store,
// its clock (Now), and the LedgerReplayer itself as the transport of its fetcher.
type LedgerReplayer struct {
	// CurrentRunSettings holds the settings of the crawl, in the form of a ledger's RunStart.
	CurrentRunSettings ledger.RunStart
	// OnDifference is called with each difference; nil: it is not called.
	OnDifference func(Difference)

	store        *currentHostStore
	records      iter.Seq2[*ledger.Record, error]
	archiveIndex *ArchiveIndex
	clock        clock
	// totalRecordedClockChange is the sum of the changes of the machine's clock in the ledger so far.
	totalRecordedClockChange time.Duration
	crawler                  *crawler.Crawler
	unreplayedRequests       map[string][]*ledgerRequest // recorded requests that were not replayed yet, by URL
	referrers                map[string]string           // the page on which the ledger found each URL first
	discoveries              map[string][]discoveredURL  // the URLs that the ledger found on each page
	openVisits               map[int64]*replayedVisit    // visits that wait for their answer, by record number
	unmatchedVisits          map[string]*replayedVisit   // visits with a ticket and without a record yet, by host
	currentVisit             *replayedVisit              // the one visit that proceeds
	report                   Report
	replayErr                error // the errors of pages that could not be replayed
}

// A Difference is a decision that the crawl makes differently than the ledger records.
type Difference struct {
	RecordNumber int64  // of the ledger; 0: the ledger has no record of it
	URL          string // that the decision is about
	Description  string // what was recorded, and what would happen now
}

// String returns the difference in one line.
func (d Difference) String() string {
	if d.RecordNumber == 0 {
		return d.URL + ": " + d.Description
	}
	return fmt.Sprintf("record %d, %s: %s", d.RecordNumber, d.URL, d.Description)
}

// A Report counts the results of a replay.
type Report struct {
	Requests         int64 // requests in the ledger
	Refusals         int64 // refusals in the ledger
	MatchingVerdicts int64 // verdicts that are the same as in the ledger
	DifferenceCount  int64 // decisions that differ from the ledger
	HeaderOnlyPages  int64 // pages with only an archived header, whose links were taken from the ledger
	Unanswered       int64 // requests without an answer: the crawl was killed, or is running
	LaterRunRecords  int64 // records of later runs, which are not replayed
}

// A ledgerRequest is a request in the ledger, with its answer.
type ledgerRequest struct {
	*ledger.Request
	recordNumber int64
	answer       *ledger.Response // nil: none is recorded
}

// A replayedVisit is a call of Crawler.Step in its own goroutine. It stops when it has a ticket for
// its request.
type replayedVisit struct {
	ticket          crawler.Ticket
	ledgerRequest   *ledgerRequest  // the request in the ledger; nil: the ledger lacks it
	requestInterval requestInterval // by the ledger
	headerOnly      bool            // the content of the answer is not archived
	ticketReady     chan bool       // receives a value when ticket is set
	proceedDecision chan error      // ends the stop: nil: use the archived answer; else fail with the error
	stepResult      chan error      // receives the result of Step
}

// A requestInterval is the time of a request and its answer by the ledger.
type requestInterval struct{ start, end time.Time }

// New returns a LedgerReplayer for the records of a ledger, which it reads twice. Its clock shows the
// beginning of the first run.
func New(records iter.Seq2[*ledger.Record, error], answers *ArchiveIndex) (*LedgerReplayer, error) {
	p := &LedgerReplayer{
		records: records, archiveIndex: answers,
		unreplayedRequests: map[string][]*ledgerRequest{}, referrers: map[string]string{},
		discoveries: map[string][]discoveredURL{}, openVisits: map[int64]*replayedVisit{},
		unmatchedVisits: map[string]*replayedVisit{},
	}
	p.store = newCurrentHostStore(p.awaitsReferrer)
	return p, p.loadFirstRun()
}

// Store returns the store for the crawl. It is in memory and empty at first. It leases URLs of the
// host of the ledger's next record.
func (p *LedgerReplayer) Store() interface {
	storage.Store
	storage.Inspector
	storage.OriginLister
	storage.Importer
} {
	return p.store
}

// Replay takes the crawl c through the records of the first run. addSeeds queues the seeds of c. An
// error, of the records, the archive or ctx, ends the replay; differences are no errors.
func (p *LedgerReplayer) Replay(
	ctx context.Context, c *crawler.Crawler, addSeeds func(context.Context) error,
) (Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.attachCrawler(c)
	if err := c.Prepare(); err != nil {
		return p.report, err
	}
	runs := 0
	for r, err := range p.records {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return p.report, err
		}
		if r.RunStart != nil {
			runs++
		}
		if runs > 1 {
			break
		}
		// Set the clock to the record, without the changes of the machine's clock.
		if r.ClockChange != nil {
			p.totalRecordedClockChange += r.ClockChange.Delta()
		}
		p.clock.advance(r.Time.Add(-p.totalRecordedClockChange))
		if r.RunStart != nil {
			p.compareRunSettings(r)
			err = addSeeds(ctx)
		} else {
			err = p.replayRecord(ctx, r)
		}
		if err != nil {
			return p.report, err
		}
	}
	// Report and end what the ledger leaves open.
	p.report.Unanswered = int64(len(p.openVisits))
	p.reportUnreplayed()
	return p.report, p.abandonUnansweredVisits()
}

// attachCrawler makes the visits of the crawl wait for their answers, and compares each visit when it
// ends.
func (p *LedgerReplayer) attachCrawler(c *crawler.Crawler) {
	p.crawler = c
	c.Fetcher = ledgerPacedFetcher{p, c.Fetcher}
	visited := c.Hooks.Visited
	c.Hooks.Visited = func(v *crawler.Visit) {
		p.compareVisit(v)
		p.replayErr = errors.Join(p.replayErr, p.discoverLedgerLinksIfHeaderOnly(v))
		if visited != nil {
			visited(v)
		}
	}
}

// replayRecord replays one record.
func (p *LedgerReplayer) replayRecord(ctx context.Context, r *ledger.Record) error {
	switch {
	case r.Request != nil:
		p.report.Requests++
		return p.replayRequestRecord(ctx, r)
	case r.Response != nil:
		return p.replayAnswer(r)
	case r.Refusal != nil:
		p.report.Refusals++
		return p.replayRefusal(ctx, r)
	}
	return nil
}

// replayRequestRecord makes the crawl send its next request to the host of a recorded request, and
// compares the two. URLs that the crawl refuses before it take neither a request nor time.
func (p *LedgerReplayer) replayRequestRecord(ctx context.Context, r *ledger.Record) error {
	u, err := decorum.ParseURL(r.Request.URL)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	for {
		v, err := p.stepHostUntilTicket(ctx, u.Origin().Host(), nil)
		switch {
		case errors.Is(err, errNothingDue):
			p.reportDifference(r.Number, r.Request.URL, "it was requested, and would not be requested now: %v", err)
			return nil
		case err != nil:
			return err
		case v == nil:
			continue
		}
		// The visit has a ticket: match it with any request of the ledger for its URL.
		if p.matchLedgerRequest(v) {
			v.requestInterval.start = p.Now()
			p.openVisits[r.Number] = v
			if url := v.ticket.URL().String(); url != r.Request.URL {
				p.reportDifference(r.Number, r.Request.URL, "it was requested, and %s would now be requested instead",
					url)
			}
			return nil
		}
		p.reportDifference(0, v.ticket.URL().String(), "it was never requested, and would be requested now")
		if err := p.finishPendingVisit(v, errNotInLedger); err != nil {
			return err
		}
	}
}

// matchLedgerRequest assigns the next recorded request for its URL to a visit. It returns false if the
// ledger has none left.
func (p *LedgerReplayer) matchLedgerRequest(v *replayedVisit) bool {
	url := v.ticket.URL().String()
	requests := p.unreplayedRequests[url]
	if len(requests) == 0 {
		return false
	}
	v.ledgerRequest, p.unreplayedRequests[url] = requests[0], requests[1:]
	return true
}

// replayAnswer gives an answer to the visit that waits for it.
func (p *LedgerReplayer) replayAnswer(r *ledger.Record) error {
	v := p.openVisits[r.Response.RequestNumber]
	if v == nil {
		return nil // the crawl did not make its request
	}
	delete(p.openVisits, r.Response.RequestNumber)
	v.requestInterval.end = r.Response.EndedAt.Add(-p.totalRecordedClockChange)
	return p.finishPendingVisit(v, nil)
}

// replayRefusal takes the next URL of the host of a recorded refusal through the crawl, and compares
// whether it is refused.
func (p *LedgerReplayer) replayRefusal(ctx context.Context, r *ledger.Record) error {
	u, err := decorum.ParseURL(r.Refusal.URL)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	host := u.Origin().Host()
	refused := false
	v, err := p.stepHostUntilTicket(ctx, host, func(l storage.Lease, d decorum.Decision) {
		refused = p.compareRefusal(r, l, d)
	})
	// Without a refusal, report what happens instead.
	switch {
	case errors.Is(err, errNothingDue):
		p.reportDifference(r.Number, r.Refusal.URL, "it was refused, and would not be evaluated now: %v", err)
	case err != nil:
		return err
	case v != nil:
		p.unmatchedVisits[host] = v
		p.reportDifference(r.Number, r.Refusal.URL, "it was refused, and %s would now be requested instead",
			v.ticket.URL())
	case !refused:
		p.reportDifference(r.Number, r.Refusal.URL, "it was refused, and would not be refused now")
	}
	return nil
}

// stepHostUntilTicket takes the next URL of a host through the crawl until it has a ticket, and returns
// the visit. It returns nil if the URL gets no ticket, and errNothingDue if the host has no URL that
// is due. refused is called if the crawl refuses the URL.
func (p *LedgerReplayer) stepHostUntilTicket(
	ctx context.Context, host string, refused func(storage.Lease, decorum.Decision),
) (*replayedVisit, error) {
	if v := p.unmatchedVisits[host]; v != nil {
		delete(p.unmatchedVisits, host)
		return v, nil
	}
	before := p.crawler.Hooks.VisitRefused
	p.crawler.Hooks.VisitRefused = refused
	defer func() { p.crawler.Hooks.VisitRefused = before }()
	// Step in a goroutine, which finishPendingVisit ends if it gets a ticket.
	v := &replayedVisit{
		ticketReady: make(chan bool, 1), proceedDecision: make(chan error), stepResult: make(chan error, 1),
	}
	p.store.currentHost, p.currentVisit = host, v
	go func() { v.stepResult <- p.crawler.Step(ctx) }()
	select {
	case <-v.ticketReady:
		return v, nil
	case err := <-v.stepResult:
		return nil, err
	}
}

// finishPendingVisit continues a visit that has its ticket, and waits for its end. If why is nil, the
// visit gets the archived answer; otherwise its request fails with why.
func (p *LedgerReplayer) finishPendingVisit(v *replayedVisit, why error) error {
	p.currentVisit = v
	v.proceedDecision <- why
	return errors.Join(<-v.stepResult, p.replayErr)
}

// abandonUnansweredVisits ends the visits for which the ledger has no answer.
func (p *LedgerReplayer) abandonUnansweredVisits() (err error) {
	for _, v := range slices.AppendSeq(slices.Collect(maps.Values(p.openVisits)), maps.Values(p.unmatchedVisits)) {
		v.ledgerRequest = nil
		err = errors.Join(err, p.finishPendingVisit(v, errNotInLedger))
	}
	return err
}

// reportDifference counts a difference and calls OnDifference. record 0 means that the ledger has no
// record of it.
func (p *LedgerReplayer) reportDifference(record int64, url, format string, args ...any) {
	p.report.DifferenceCount++
	if p.OnDifference != nil {
		p.OnDifference(Difference{record, url, fmt.Sprintf(format, args...)})
	}
}
