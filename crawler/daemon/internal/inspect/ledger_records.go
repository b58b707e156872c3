package inspect

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// LedgerRecords yields the records of the crawl's ledger: see the function LedgerRecords.
func (q *Inspector) LedgerRecords(ctx context.Context, query api.LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return LedgerRecords(ctx, datadir.StateDir(q.Project.Store.Path).Path(datadir.LedgerDir), query)
}

// LedgerRecords yields the requests, responses and refusals in the ledger at dir that the query
// selects, oldest first. It also yields the start of each run, since a request before it gets no
// response. The records lack their hashes, which apply only to the lines in the files. A process
// may append to the ledger meanwhile. An error is yielded last.
func LedgerRecords(ctx context.Context, dir string, query api.LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return func(yield func(*ledger.Record, error) bool) {
		f, err := newLedgerFilter(query)
		if err != nil {
			yield(nil, err)
			return
		}
		for r, err := range ledger.Records(dir) {
			switch {
			case err == nil:
				err = context.Cause(ctx)
			case errors.Is(err, fs.ErrNotExist):
				err = api.NotFound("the crawl has no ledger: see output.ledger of its project")
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !f.selects(r) {
				continue
			}
			withoutHash := *r
			withoutHash.Hash = ""
			if !yield(&withoutHash, nil) {
				return
			}
		}
	}
}

// A ledgerFilter selects the records of a query.
type ledgerFilter struct {
	url, host          string         // of selected records; empty: any
	unansweredRequests map[int64]bool // numbers of selected requests whose response has not come yet
}

// newLedgerFilter returns the filter of a query, or an error if its URL or host is invalid.
func newLedgerFilter(query api.LedgerQuery) (*ledgerFilter, error) {
	f := &ledgerFilter{unansweredRequests: map[int64]bool{}}
	if query.URL != "" {
		u, err := decorum.ParseURL(query.URL)
		if err != nil {
			return nil, api.InvalidInput("url: %w", err)
		}
		f.url = u.String()
	}
	var err error
	f.host, err = ParseHostParam(query.Host)
	return f, err
}

// selects reports whether the filter selects r. A response is selected with its request, so selects
// remembers the requests and must see the records in their order.
func (f *ledgerFilter) selects(r *ledger.Record) bool {
	switch {
	case r.Request != nil && f.selectsURL(r.Request.URL):
		f.unansweredRequests[r.Number] = true
		return true
	case r.Response != nil && f.unansweredRequests[r.Response.RequestNumber]:
		delete(f.unansweredRequests, r.Response.RequestNumber)
		return true
	case r.RunStart != nil, r.Recovery != nil:
		clear(f.unansweredRequests)
		return true
	}
	return r.Refusal != nil && f.selectsURL(r.Refusal.URL)
}

// selectsURL reports whether the filter selects records about url.
func (f *ledgerFilter) selectsURL(url string) bool {
	if f.host != "" {
		if u, err := decorum.ParseURL(url); err != nil || u.Origin().Host() != f.host {
			return false
		}
	}
	return f.url == "" || f.url == url
}
