package replay

import (
	"context"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// loadFirstRun finds the requests of the first run, and what came of them.
func (p *LedgerReplayer) loadFirstRun() error {
	byNumber := map[int64]*ledgerRequest{}
	runs := 0
	for r, err := range p.records {
		switch {
		case err != nil:
			return err
		case r.RunStart != nil:
			if runs++; runs == 1 {
				p.clock.advance(r.Time)
			}
		}
		switch {
		case runs > 1:
			p.report.LaterRunRecords++
		case r.Request != nil:
			a := &ledgerRequest{Request: r.Request, recordNumber: r.Number}
			byNumber[r.Number] = a
			p.unreplayedRequests[a.URL] = append(p.unreplayedRequests[a.URL], a)
			if a.Kind != ledger.KindTDMRep { // else that is where the page was found that waited for it
				p.indexDiscovery(a.URL, a.Referrer, a.URLSource)
			}
		case r.Refusal != nil:
			p.indexDiscovery(r.Refusal.URL, r.Refusal.Referrer, r.Refusal.URLSource)
		case r.Response != nil && byNumber[r.Response.RequestNumber] != nil:
			byNumber[r.Response.RequestNumber].answer = r.Response
		}
	}
	if runs == 0 {
		return errors.New("the ledger has no run to replay")
	}
	return nil
}

// A discoveredURL is what a page led to.
type discoveredURL struct{ url, sourceKind string }

// indexDiscovery notes what a URL was found on, the first time.
func (p *LedgerReplayer) indexDiscovery(url, referrer, source string) {
	if _, known := p.referrers[url]; !known {
		p.referrers[url] = referrer
		p.discoveries[referrer] = append(p.discoveries[referrer], discoveredURL{url, source})
	}
}

// awaitsReferrer reports whether an entry that is found now was found on another page, of
// which the answer is awaited: of pages that are read at the same moment, the ledger
// does not say which was first, but what it says the URL was found on does. Should it
// not be found there, it is missed.
func (p *LedgerReplayer) awaitsReferrer(e *storage.Entry) bool {
	referrer, known := p.referrers[e.URL.String()]
	if !known || referrer == e.Referrer {
		return false
	}
	for _, v := range p.openVisits {
		if v.ticket.URL().String() == referrer {
			return true
		}
	}
	return false
}

// discoverLedgerLinksIfHeaderOnly queues what a page led to of which the content is not archived, for it was
// not to be used: that is the word of the ledger, and what becomes of it is decided
// again.
func (p *LedgerReplayer) discoverLedgerLinksIfHeaderOnly(v *crawler.Visit) error {
	if !p.currentVisit.headerOnly {
		return nil
	}
	p.report.HeaderOnlyPages++
	var entries []storage.Entry
	for _, l := range p.discoveries[v.URL().String()] {
		u, err := decorum.ParseURL(l.url)
		source, noSource := storage.ParseSource(l.sourceKind)
		if err = errors.Join(err, noSource); err != nil {
			return err
		}
		entries = append(entries, storage.Entry{URL: u, Source: source, Depth: v.Lease.Depth + 1, Referrer: v.URL().String()})
	}
	_, err := p.crawler.Frontier.Discover(context.Background(), entries...)
	return err
}
