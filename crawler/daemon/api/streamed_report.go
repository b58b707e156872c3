package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// A StreamedReport is a report that yields its hosts one by one, so that they need not all be in
// memory.
type StreamedReport struct {
	Totals CrawlReport             // without Hosts
	Hosts  iter.Seq2[*Host, error] // in the order of CrawlReport.Hosts; an error is yielded last
}

// FullReport reads all hosts and returns the whole report.
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

// FullReport returns the whole report of a crawl. report is the method Inspector.Report.
func FullReport(
	ctx context.Context, report func(context.Context, ReportQuery, func(*StreamedReport) error) error, q ReportQuery,
) (r *CrawlReport, err error) {
	err = report(ctx, q, func(s *StreamedReport) error {
		r, err = s.FullReport()
		return err
	})
	return r, err
}

// errNoHostsMember is the error of a CrawlReport whose JSON does not end as WriteJSON expects.
var errNoHostsMember = errors.New("the report cannot be written: its last member is not hosts")

// WriteJSON writes the report host by host. The text is that of jsonline.WriteIndented for the
// whole CrawlReport.
func (s *StreamedReport) WriteJSON(w io.Writer) error {
	// Encode the totals with an empty array of hosts, the last member, and cut the array off.
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
	// Write each host where the array was, indented as an element of it.
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
			return err // of this write or an earlier one: b keeps its first error
		}
	}
	if !hasHosts {
		return jsonline.WriteIndented(w, &s.Totals)
	}
	b.WriteString("\n  ]\n}\n")
	return b.Flush()
}

// The lines of a report in JSON Lines. The totals come first, then the hosts.
type (
	reportTotalsLine struct {
		Type string `json:"type"`
		*CrawlReport
		Hosts []*Host `json:"hosts,omitempty"` // hides CrawlReport.Hosts; always nil
	}
	reportHostLine struct {
		Type string `json:"type"`
		*Host
	}
)

// WriteJSONLines writes the totals on one line, and then each host on a line.
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
