package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/robots/gate"
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

// A FrontierURLQuery says which URLs of a frontier are wanted.
type FrontierURLQuery struct {
	Host   string // of this host only; empty: of all
	Origin string // of this origin only, as https://example.com; empty: of all
	State  string // of FrontierURL.State; empty: all
	Limit  int    // at most so many; 0: all
}

// A LedgerQuery says which records of a ledger are wanted.
type LedgerQuery struct {
	URL  string // of this URL only, in canonical form; empty: of all
	Host string // of this host only; empty: of all
}

// FrontierStats are the numbers of a frontier, and the files that hold it.
type FrontierStats struct {
	At              time.Time        `json:"at"`
	HostCount       int              `json:"host_count"`
	OriginCount     int              `json:"origin_count"`
	HostsByState    map[string]int   `json:"states"` // hosts in each
	QueuedURLs      int              `json:"queued"`
	AwaitingRevisit int              `json:"resting"`
	ParkedURLs      int              `json:"parked"`
	SeenURLs        int              `json:"seen"`
	SuspendedURLs   int              `json:"set_aside"`          // of QueuedURLs: of hosts that are set aside
	NextDueAt       time.Time        `json:"next_due,omitzero"`  // when the next URL can be visited, if none can now
	DueSince        time.Time        `json:"due_since,omitzero"` // since when the host waits that is due longest
	StoreFiles      []StoreFileStats `json:"files"`
}

// StoreFileStats are the sizes of one file of a store.
type StoreFileStats struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	FreeBytes int64  `json:"free_bytes"` // of them, which compact gives back, about
}

// A StreamedReport is a report whose hosts are not all in memory.
type StreamedReport struct {
	Totals CrawlReport             // without Hosts
	Hosts  iter.Seq2[*Host, error] // in the order of the report; an error is yielded last
}

// FullReport returns the report with its hosts.
func (s *StreamedReport) FullReport() (*CrawlReport, error) {
	r := s.Totals
	for h, err := range s.Hosts {
		if err != nil {
			return nil, err
		}
		r.Hosts = append(r.Hosts, h)
	}
	return &r, nil
}

// FullReport returns the report of a crawl with its hosts. report is Inspector.Report.
func FullReport(
	ctx context.Context, report func(context.Context, ReportQuery, func(*StreamedReport) error) error, q ReportQuery,
) (r *CrawlReport, err error) {
	err = report(ctx, q, func(s *StreamedReport) error {
		r, err = s.FullReport()
		return err
	})
	return r, err
}

// errNoHostsMember says that the text of a report does not end as WriteJSON expects.
var errNoHostsMember = errors.New("the report cannot be written: its last member is not hosts")

// WriteJSON writes what jsonline.WriteIndented writes of the whole CrawlReport, host by host.
func (s *StreamedReport) WriteJSON(w io.Writer) error {
	// The hosts are the last member: they go in the place of an empty array.
	totals := s.Totals
	totals.Hosts = []*Host{}
	var text bytes.Buffer
	if err := jsonline.WriteIndented(&text, &totals); err != nil {
		return err
	}
	head, found := bytes.CutSuffix(text.Bytes(), []byte("[]\n}\n"))
	if !found {
		return errNoHostsMember
	}
	b := bufio.NewWriterSize(w, 1<<16)
	before := string(head) + "[\n    "
	hasHosts := false
	for h, err := range s.Hosts {
		if err != nil {
			return err
		}
		text.Reset()
		e := jsonline.NewEncoder(&text)
		e.SetIndent("    ", "  ")
		if err := e.Encode(h); err != nil {
			return err
		}
		b.WriteString(before)
		hasHosts, before = true, ",\n    "
		if _, err := b.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n"))); err != nil {
			return err // it fails if anything before did
		}
	}
	if !hasHosts {
		return jsonline.WriteIndented(w, &s.Totals)
	}
	b.WriteString("\n  ]\n}\n")
	return b.Flush()
}

// The lines of a report in JSON Lines: the totals first, then the hosts.
type (
	reportTotalsLine struct {
		Type string `json:"type"`
		*CrawlReport
		Hosts []*Host `json:"hosts,omitempty"` // in the place of the report's
	}
	reportHostLine struct {
		Type string `json:"type"`
		*Host
	}
)

// WriteJSONLines writes the totals, and then each host, on lines of their own.
func (s *StreamedReport) WriteJSONLines(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	e := jsonline.NewEncoder(b)
	err := e.Encode(reportTotalsLine{Type: "totals", CrawlReport: &s.Totals})
	for h, hostErr := range s.Hosts {
		if err = cmp.Or(err, hostErr); err != nil {
			return err
		}
		err = e.Encode(reportHostLine{"host", h})
	}
	return cmp.Or(err, b.Flush())
}

// A URLExplanation is all that a crawl makes of a URL.
type URLExplanation struct {
	Input         string                 `json:"input"` // the text that was asked about
	RewriteSteps  []RewriteStep          `json:"steps"` // from the text to URL
	URL           string                 `json:"url"`   // under which it is queued
	Scope         ExplainedScope         `json:"scope"`
	Robots        ExplainedRules         `json:"robots"`
	FrontierState ExplainedFrontierState `json:"state"`
	Host          *Host                  `json:"host,omitempty"` // as the crawl knows it
	Visit         ExplainedNextVisit     `json:"visit"`
}

// A RewriteStep is a step from a text to the URL that is queued.
type RewriteStep struct {
	Step    string   `json:"step"`          // canonical, https, params or clean_param
	URL     string   `json:"url"`           // after it
	Changes []string `json:"why,omitempty"` // what was changed, by which rule; empty: nothing was
}

// ExplainedScope is whether a URL is in scope.
type ExplainedScope struct {
	InScope        bool                   `json:"in"`
	Reason         frontier.RefusalReason `json:"reason,omitempty"`  // why not, in one word, as decorum report counts it
	Detail         string                 `json:"why,omitempty"`     // reason in words, with the limit that was reached
	CountedPattern string                 `json:"pattern,omitempty"` // under which max_urls_per_pattern counts it; empty: under none
}

// ExplainedRules are what robots.txt says of a URL.
type ExplainedRules struct {
	Outcome               string    `json:"outcome"`           // of the last lookup: unknown, rules, allow_all, disallow_all, cached_rules or following
	FetchedAt             time.Time `json:"fetched,omitzero"`  // when its answer came
	OriginPostponedReason string    `json:"closed,omitempty"`  // why the origin cannot be visited for now
	OriginPostponedUntil  time.Time `json:"until,omitzero"`    // if closed: when it is asked for again
	MayVisit              *bool     `json:"judged,omitempty"`  // whether it may be visited, purposes included; null: no rules are known
	Reason                string    `json:"because,omitempty"` // the rule that decides
	gate.Explanation
}

// ExplainedFrontierState is what the frontier holds of a URL.
type ExplainedFrontierState struct {
	State         string       `json:"state"`           // unknown, queued, resting, parked or done
	KnownAs       string       `json:"as,omitempty"`    // another URL under which the crawl has met it, before it knew its rules
	URLsAhead     int          `json:"ahead"`           // URLs of the origin that go before it
	Entry         *FrontierURL `json:"entry,omitempty"` // as it waits; none if it does not
	PriorityClass uint8        `json:"class"`           // 0 to 3: of the URLs of its origin, lower ones go first
	PriorityRank  uint16       `json:"rank"`            // within its class, lower ones go first
}

// ExplainedNextVisit is when a URL is visited.
type ExplainedNextVisit struct {
	When      string    `json:"when"`        // now, at, never or after (the URLs that go before it)
	NotBefore time.Time `json:"at,omitzero"` // the earliest time, unless when is now or never
	Reason    string    `json:"why"`
}

// A FrontierURL is all that is kept of a URL in the frontier.
type FrontierURL struct {
	ExportLineType      string               `json:"type,omitempty"` // url, in an export
	URL                 string               `json:"url"`
	State               string               `json:"state"`               // queued, resting or parked
	NotBefore           time.Time            `json:"at,omitzero"`         // not before; none if it waits for no time of its own
	Reason              string               `json:"why,omitempty"`       // why it waits, or is parked; in lists only
	Source              string               `json:"source"`              // seed, link, redirect, sitemap, feed, revisit or robots
	PriorityClass       uint8                `json:"class"`               // 0 to 3: of the URLs of its origin, lower ones go first
	PriorityRank        uint16               `json:"rank,omitempty"`      // within its class, lower ones go first
	Depth               int                  `json:"depth"`               // links from a seed
	Referrer            string               `json:"referrer,omitempty"`  // the page that it was found on
	RobotsFor           string               `json:"for,omitempty"`       // the origin, of a hop of its robots.txt
	FailedAttempts      int                  `json:"attempt,omitempty"`   // visits in a row that failed
	Redirects           int                  `json:"redirects,omitempty"` // in a row, that led to it
	CallbackData        []byte               `json:"context,omitempty"`   // what callbacks gave it on its way, in base64: at most 64 KiB
	UncleanedURL        string               `json:"found,omitempty"`     // what it was found as, if a rule took something off
	UseUncleanedURL     bool                 `json:"as_found,omitempty"`  // found is visited: nothing is at url
	HTTPSUpgradeTried   bool                 `json:"folded,omitempty"`    // on https: it was found on http; on http: nothing is at its twin on https
	Method              string               `json:"method,omitempty"`    // how it is asked for; empty: by GET
	RequestBody         []byte               `json:"body,omitempty"`      // of the request
	Sent                bool                 `json:"sent,omitempty"`      // it was sent, or about to be, and must not be sent again
	VisitHistorySummary *VisitHistorySummary `json:"page,omitempty"`      // what its last visit left; none if it was not visited
}

// A VisitHistorySummary is what the last visit left: storage.VisitHistorySummary.
type VisitHistorySummary struct {
	VisitedAt             time.Time `json:"visited,omitzero"`        // the end of the last visit
	Status                int       `json:"status"`                  // of its answer
	ETag                  []byte    `json:"etag,omitempty"`          // in base64: a server may send any bytes
	LastModified          []byte    `json:"last_modified,omitempty"` // in base64, as etag
	BodyHash              string    `json:"hash,omitempty"`          // of the body: 64 bits, in hex; 0 if it is not known
	ComparedVisits        int       `json:"visits"`                  // those that could be compared with the one before; old ones fade
	ChangedVisits         int       `json:"changes"`                 // how many of visits found the page changed
	TotalComparedInterval int64     `json:"span_ns"`                 // the times between visits, added up, in nanoseconds
	SitemapLastmod        time.Time `json:"listed,omitzero"`         // when it was modified, as a sitemap says that was read since
	ConsecutiveMissing    int       `json:"missing,omitempty"`       // visits in a row that found nothing there
}
