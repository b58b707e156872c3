package inspect

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// errNoHostsMember says that the text of a report does not end as WriteJSON expects.
var errNoHostsMember = errors.New("the report cannot be written: its last member is not hosts")

// WriteJSON writes what jsonline.WriteIndented writes of the whole api.CrawlReport, host by
// host.
func (s *StreamedReport) WriteJSON(ctx context.Context, w io.Writer) error {
	if len(s.Ranking.Hosts) == 0 {
		return jsonline.WriteIndented(w, &s.Totals)
	}
	// The hosts are the last member: they go in the place of an empty array.
	totals := s.Totals
	totals.Hosts = []*api.Host{}
	var text bytes.Buffer
	if err := jsonline.WriteIndented(&text, &totals); err != nil {
		return err
	}
	head, found := bytes.CutSuffix(text.Bytes(), []byte("[]\n}\n"))
	if !found {
		return errNoHostsMember
	}
	b := bufio.NewWriterSize(w, 1<<16)
	b.Write(head)
	before := "[\n    "
	err := s.ForEachReportedHost(ctx, func(h *api.Host) error {
		text.Reset()
		e := jsonline.NewEscapingEncoder(&text)
		e.SetIndent("    ", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(h); err != nil {
			return err
		}
		b.WriteString(before)
		before = ",\n    "
		_, err := b.Write(bytes.TrimSuffix(text.Bytes(), []byte("\n"))) // it fails if anything before did
		return err
	})
	if err == nil {
		b.WriteString("\n  ]\n}\n")
	}
	return cmp.Or(err, b.Flush())
}

// WriteJSONLines writes the totals, and then each host, on lines of their own.
func (s *StreamedReport) WriteJSONLines(ctx context.Context, w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	e := jsonline.NewEscapingEncoder(b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Type string `json:"type"`
		*api.CrawlReport
		Hosts []*api.Host `json:"hosts,omitempty"` // in the place of the report's
	}{"totals", &s.Totals, nil})
	if err == nil {
		err = s.ForEachReportedHost(ctx, func(h *api.Host) error {
			return e.Encode(struct {
				Type string `json:"type"`
				*api.Host
			}{"host", h})
		})
	}
	return cmp.Or(err, b.Flush())
}
