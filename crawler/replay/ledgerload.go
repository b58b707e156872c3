package replay

import (
	"context"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// loadFirstRun indexes the requests of the ledger's first run, with their answers and the pages on
// which URLs were found. It sets the clock to the beginning of the run.
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
		// Count the records of later runs, and index those of the first.
		switch {
		case runs > 1:
			p.report.LaterRunRecords++
		case r.Request != nil:
			a := &ledgerRequest{Request: r.Request, recordNumber: r.Number}
			byNumber[r.Number] = a
			p.unreplayedRequests[a.URL] = append(p.unreplayedRequests[a.URL], a)
			if a.Kind != ledger.KindTDMRep { // the Referrer of a tdmrep.json is that of the page which needs it
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

// A discoveredURL is a URL that a page led to, with its storage.Source as text.
type discoveredURL struct{ url, sourceKind string }

// indexDiscovery records the page on which a URL was found first.
func (p *LedgerReplayer) indexDiscovery(url, referrer, source string) {
	if _, known := p.referrers[url]; !known {
		p.referrers[url] = referrer
		p.discoveries[referrer] = append(p.discoveries[referrer], discoveredURL{url, source})
	}
}

// awaitsReferrer reports whether the ledger found the URL of an entry on another page, whose answer
// has not been replayed yet. If two pages were read at the same time, the ledger does not show which
// came first, but the recorded referrer of a URL on both does. If the other page does not lead to the
// URL, the replay misses it.
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

// discoverLedgerLinksIfHeaderOnly queues the URLs that the ledger found on a page whose content is not
// archived, because the site refused its use. The crawl decides about these URLs again.
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
		e := storage.Entry{URL: u, Source: source, Depth: v.Lease.Depth + 1, Referrer: v.URL().String()}
		if source == storage.SourceResource {
			e.Depth = v.Lease.Depth
		}
		entries = append(entries, e)
	}
	_, err := p.crawler.Frontier.Discover(context.Background(), entries...)
	return err
}
