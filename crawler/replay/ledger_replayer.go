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

// A LedgerReplayer replays the first run of a ledger. The crawl that is put together for it
// has the LedgerReplayer's Store, its clock (Now), and the LedgerReplayer for the transport of its fetcher.
type LedgerReplayer struct {
	// CurrentRunSettings is what the crawl that is put together works by, as a ledger says it.
	CurrentRunSettings ledger.RunStart
	// OnDifference is told of each difference.
	OnDifference func(Difference)

	store                    *currentHostStore
	records                  iter.Seq2[*ledger.Record, error]
	archiveIndex             *ArchiveIndex
	clock                    clock
	totalRecordedClockChange time.Duration // by how much that of the machine was, since the first record
	crawler                  *crawler.Crawler
	unreplayedRequests       map[string][]*ledgerRequest // requests that were not replayed yet, by URL
	referrers                map[string]string           // what a URL was found on, by the ledger
	discoveries              map[string][]discoveredURL  // and where pages led to
	openVisits               map[int64]*replayedVisit    // requests that wait for their answer, by number
	unmatchedVisits          map[string]*replayedVisit   // visits that the ledger does not show yet, by host
	currentVisit             *replayedVisit              // the one visit that goes on
	report                   Report
	replayErr                error // of a record that cannot be replayed
}

// A Difference is a decision that was not made again.
type Difference struct {
	RecordNumber int64  // of the ledger; 0: none shows it
	URL          string // that it is about
	Description  string // what was recorded, and what would be now
}

// String says it.
func (d Difference) String() string {
	if d.RecordNumber == 0 {
		return d.URL + ": " + d.Description
	}
	return fmt.Sprintf("record %d, %s: %s", d.RecordNumber, d.URL, d.Description)
}

// A Report is what came of a replay.
type Report struct {
	Requests         int64 // of the ledger
	Refusals         int64 // of the ledger
	MatchingVerdicts int64 // derived again, and the same
	DifferenceCount  int64 // decisions that were not made again
	HeaderOnlyPages  int64 // pages of which only the header is archived: the ledger says where they led
	Unanswered       int64 // requests without an answer: the crawl was killed, or goes on
	LaterRunRecords  int64 // records of later runs, which are not replayed
}

// A ledgerRequest is a request of the ledger.
type ledgerRequest struct {
	*ledger.Request
	recordNumber int64
	answer       *ledger.Response // nil: none is recorded
}

// A replayedVisit is a step of the crawl that has come to its request.
type replayedVisit struct {
	ticket          crawler.Ticket
	ledgerRequest   *ledgerRequest  // what the ledger has of it
	requestInterval requestInterval // when it is made
	headerOnly      bool            // its content is not archived
	ticketReady     chan bool       // the ticket is there
	proceedDecision chan error      // how it goes on: nil: with the archived answer
	stepResult      chan error      // how the step ended
}

// A requestInterval is when the ledger shows a request of a host.
type requestInterval struct{ start, end time.Time }

// New returns a LedgerReplayer of the records of a ledger, which are read twice. Its clock is
// at the beginning of the run.
func New(records iter.Seq2[*ledger.Record, error], answers *ArchiveIndex) (*LedgerReplayer, error) {
	p := &LedgerReplayer{records: records, archiveIndex: answers,
		unreplayedRequests: map[string][]*ledgerRequest{}, referrers: map[string]string{}, discoveries: map[string][]discoveredURL{}, openVisits: map[int64]*replayedVisit{}, unmatchedVisits: map[string]*replayedVisit{}}
	p.store = newCurrentHostStore(p.awaitsReferrer)
	return p, p.loadFirstRun()
}

// Store returns the store of the crawl that is put together. It is in memory, and empty at
// first; whose turn it is, the ledger says.
func (p *LedgerReplayer) Store() interface {
	storage.Store
	storage.Inspector
	storage.OriginLister
	storage.Importer
} {
	return p.store
}

// Replay takes the crawl through the records. addSeeds queues its seeds.
func (p *LedgerReplayer) Replay(ctx context.Context, c *crawler.Crawler, addSeeds func(context.Context) error) (Report, error) {
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
	p.report.Unanswered = int64(len(p.openVisits))
	p.reportUnreplayed()
	return p.report, p.abandonUnansweredVisits()
}

// attachCrawler has the visits of the crawl wait for their answers.
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

// replayRequestRecord has the crawl make its next request to the host of a recorded one. What
// it refuses before costs no request, and no time.
func (p *LedgerReplayer) replayRequestRecord(ctx context.Context, r *ledger.Record) error {
	u, err := decorum.ParseURL(r.Request.URL)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	for {
		v, err := p.stepHostUntilTicket(ctx, u.Origin().Host(), nil)
		switch {
		case errors.Is(err, errNothingDue):
			p.reportDifference(r.Number, r.Request.URL, "it was asked for, and would not be: %v", err)
			return nil
		case err != nil:
			return err
		case v == nil:
			continue
		}
		if p.matchLedgerRequest(v) {
			v.requestInterval.start = p.Now()
			p.openVisits[r.Number] = v
			if url := v.ticket.URL().String(); url != r.Request.URL {
				p.reportDifference(r.Number, r.Request.URL, "it was asked for, and in its place would be %s", url)
			}
			return nil
		}
		p.reportDifference(0, v.ticket.URL().String(), "it would be asked for, and never was")
		if err := p.finishPendingVisit(v, errNotInLedger); err != nil {
			return err
		}
	}
}

// matchLedgerRequest finds what the ledger has of a visit, and false if it has none.
func (p *LedgerReplayer) matchLedgerRequest(v *replayedVisit) bool {
	url := v.ticket.URL().String()
	requests := p.unreplayedRequests[url]
	if len(requests) == 0 {
		return false
	}
	v.ledgerRequest, p.unreplayedRequests[url] = requests[0], requests[1:]
	return true
}

// replayAnswer hands an answer over to the visit that waits for it.
func (p *LedgerReplayer) replayAnswer(r *ledger.Record) error {
	v := p.openVisits[r.Response.RequestNumber]
	if v == nil {
		return nil // its request was not made again
	}
	delete(p.openVisits, r.Response.RequestNumber)
	v.requestInterval.end = r.Response.EndedAt.Add(-p.totalRecordedClockChange)
	return p.finishPendingVisit(v, nil)
}

// replayRefusal has the crawl refuse what was refused.
func (p *LedgerReplayer) replayRefusal(ctx context.Context, r *ledger.Record) error {
	u, err := decorum.ParseURL(r.Refusal.URL)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	host := u.Origin().Host()
	refused := false
	v, err := p.stepHostUntilTicket(ctx, host, func(l storage.Lease, d decorum.Decision) { refused = p.compareRefusal(r, l, d) })
	switch {
	case errors.Is(err, errNothingDue):
		p.reportDifference(r.Number, r.Refusal.URL, "it was refused, and would not be asked about: %v", err)
	case err != nil:
		return err
	case v != nil:
		p.unmatchedVisits[host] = v
		p.reportDifference(r.Number, r.Refusal.URL, "it was refused, and in its place %s would be asked for", v.ticket.URL())
	case !refused:
		p.reportDifference(r.Number, r.Refusal.URL, "it was refused, and would not be")
	}
	return nil
}

// stepHostUntilTicket takes the next URL of a host through the pipeline, as far as to its request. It
// returns nil if there comes none of it, and errNothingDue if the host has none.
func (p *LedgerReplayer) stepHostUntilTicket(ctx context.Context, host string, refused func(storage.Lease, decorum.Decision)) (*replayedVisit, error) {
	if v := p.unmatchedVisits[host]; v != nil {
		delete(p.unmatchedVisits, host)
		return v, nil
	}
	before := p.crawler.Hooks.VisitRefused
	p.crawler.Hooks.VisitRefused = refused
	defer func() { p.crawler.Hooks.VisitRefused = before }()
	v := &replayedVisit{ticketReady: make(chan bool, 1), proceedDecision: make(chan error), stepResult: make(chan error, 1)}
	p.store.currentHost, p.currentVisit = host, v
	go func() { v.stepResult <- p.crawler.Step(ctx) }()
	select {
	case <-v.ticketReady:
		return v, nil
	case err := <-v.stepResult:
		return nil, err
	}
}

// finishPendingVisit lets a visit go on, with the archived answer or without one, to its end.
func (p *LedgerReplayer) finishPendingVisit(v *replayedVisit, why error) error {
	p.currentVisit = v
	v.proceedDecision <- why
	return errors.Join(<-v.stepResult, p.replayErr)
}

// abandonUnansweredVisits ends the visits of which the ledger has no answer.
func (p *LedgerReplayer) abandonUnansweredVisits() (err error) {
	for _, v := range slices.AppendSeq(slices.Collect(maps.Values(p.openVisits)), maps.Values(p.unmatchedVisits)) {
		v.ledgerRequest = nil
		err = errors.Join(err, p.finishPendingVisit(v, errNotInLedger))
	}
	return err
}

func (p *LedgerReplayer) reportDifference(record int64, url, format string, args ...any) {
	p.report.DifferenceCount++
	if p.OnDifference != nil {
		p.OnDifference(Difference{record, url, fmt.Sprintf(format, args...)})
	}
}
