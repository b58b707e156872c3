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

	"github.com/decorum-crawler/decorum/internal/jsonline"
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
