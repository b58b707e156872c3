package api

import (
	"context"
	"iter"

	"github.com/decorum-crawler/decorum/storage/ledger"
)

// An Inspector answers questions about one crawl, and adds URLs to it. Client.Crawl returns
// an Inspector that queries the process which runs the crawl; the commands have another,
// which opens the files of a crawl that no process runs. The methods are safe for concurrent
// use. An error that the caller can act on is a *Problem.
type Inspector interface {
	// Report calls use with a report on the state of the crawl, and returns the error of use.
	// It evaluates each parked URL, so that a crawl with many of them takes time. The hosts
	// can be read only while use runs.
	Report(ctx context.Context, q ReportQuery, use func(*StreamedReport) error) error
	// ExplainURL says how the crawl treats a URL. It makes no request.
	ExplainURL(ctx context.Context, url string) (*URLExplanation, error)
	// FrontierStats returns the size of the frontier, and when its next URL is due.
	FrontierStats(ctx context.Context) (*FrontierStats, error)
	// FrontierURLs yields URLs of the frontier, those of each origin in the order of their
	// visits. An error is yielded last.
	FrontierURLs(ctx context.Context, q FrontierURLQuery) iter.Seq2[*FrontierURL, error]
	// LedgerRecords yields the ledger's records of requests, answers, refusals and beginnings
	// of runs, the oldest first, without their hashes. An error is yielded last.
	LedgerRecords(ctx context.Context, q LedgerQuery) iter.Seq2[*ledger.Record, error]
	// AddURLs queues the URLs of lines. Each line is a URL, or an object with url, depth and
	// referrer. AddURLs reads lines no faster than the store writes them. It ends at an error
	// from lines, and when ctx is done. The AddURLsResult then covers what was added before;
	// it may be nil.
	AddURLs(ctx context.Context, lines iter.Seq2[string, error]) (*AddURLsResult, error)
}

// A LedgerQuery selects records of a ledger.
type LedgerQuery struct {
	URL  string // records of this URL only, in canonical form; empty: of all
	Host string // records of this host only; empty: of all
}
