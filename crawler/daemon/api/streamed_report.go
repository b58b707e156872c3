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
