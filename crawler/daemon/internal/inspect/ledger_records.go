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

// LedgerRecords yields what the crawl's ledger has: see the function LedgerRecords.
func (q *Inspector) LedgerRecords(ctx context.Context, query api.LedgerQuery) iter.Seq2[*ledger.Record, error] {
	return LedgerRecords(ctx, datadir.StateDir(q.Project.Store.Path).Path(datadir.LedgerDir), query)
}

// LedgerRecords yields the requests, answers and refusals of a ledger that the query selects,
// the oldest first, and where runs begin: of a request before that, no answer comes. The
// records lack their hashes, which are of lines as they stand in the files. A process may
// write to the ledger meanwhile. An error is yielded last.
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
				err = api.NotFound("the crawl keeps no ledger: see output.ledger of its project")
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

// A ledgerFilter selects records.
type ledgerFilter struct {
	url, host          string
	unansweredRequests map[int64]bool // selected requests, by number
}

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

// selects reports whether a record was asked for, and notes which answers are to come.
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

// selectsURL reports whether a URL was asked for.
func (f *ledgerFilter) selectsURL(url string) bool {
	if f.host != "" {
		if u, err := decorum.ParseURL(url); err != nil || u.Origin().Host() != f.host {
			return false
		}
	}
	return f.url == "" || f.url == url
}
