package api

import (
	"context"
	"iter"

	"github.com/decorum-crawler/decorum/storage/ledger"
)

// An Inspector answers questions about one crawl, and adds URLs to it. Client.Crawl returns
// one that asks the process which runs the crawl; the commands have another, which opens the
// files of a crawl that no process runs. Its methods may be called at the same time. Errors
// that the caller can do something about are a *Problem.
type Inspector interface {
	// Report calls use with a report on how the crawl stands, and returns what use returns.
	// It judges each parked URL: of many it takes time. The hosts can be read only while use
	// runs.
	Report(ctx context.Context, q ReportQuery, use func(*StreamedReport) error) error
	// ExplainURL says what the crawl makes of a URL, and makes no request.
	ExplainURL(ctx context.Context, url string) (*URLExplanation, error)
	// FrontierStats returns how much the frontier holds, and when its next URL is due.
	FrontierStats(ctx context.Context) (*FrontierStats, error)
	// FrontierURLs yields URLs that the frontier keeps, of each origin in the order in which
	// they would be visited. An error is yielded last.
	FrontierURLs(ctx context.Context, q FrontierURLQuery) iter.Seq2[*FrontierURL, error]
	// LedgerRecords yields what the ledger has of requests and refusals, the oldest first,
	// and where runs begin. The records lack their hashes. An error is yielded last.
	LedgerRecords(ctx context.Context, q LedgerQuery) iter.Seq2[*ledger.Record, error]
	// AddURLs queues what lines name: URLs, or objects with url, depth and referrer. It takes
	// no more of them than the store can keep up with. An error of lines, or ctx, ends it:
	// the AddURLsResult says then what was taken before; it may be nil.
	AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*AddURLsResult, error)
}

// A LedgerQuery says which records of a ledger are wanted.
type LedgerQuery struct {
	URL  string // of this URL only, in canonical form; empty: of all
	Host string // of this host only; empty: of all
}
