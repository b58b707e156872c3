package daemon

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/jsonline"
)

// outlookRows is how many hosts, and rules, the table of a forecast names.
const outlookRows = 20

// writeLines writes the totals, and then each host, on lines of their own.
func (p *prospect) writeLines(out *output) error {
	e := jsonline.NewEncoder(out.w)
	e.SetEscapeHTML(false)
	err := e.Encode(p)
	for _, h := range p.hosts {
		if err == nil {
			err = e.Encode(h)
		}
	}
	if err = errors.Join(err, out.Sync()); err != nil {
		return fmt.Errorf("cannot write the forecast: %w", err)
	}
	return nil
}

// writeTable writes the forecast for people.
func (p *prospect) writeTable(w io.Writer) error {
	var s sheet
	s.writeLine("Forecast of the crawl, from robots.txt files and sitemaps alone, as of %s:", clock(p.At))
	s.writeLine("")
	s.table(func(row func(...any)) {
		heads := []any{"HOST", "REQUESTS", "ROBOTS", "TDMREP", "SITEMAPS", "PAGES", "LEFT", "BLOCKED", "DECLARED", "CONFIGURED", "A VISIT", "BYTES", "DURATION"}
		cells := func(all ...any) {
			if p.TDMRep == 0 {
				all = slices.Delete(all, 3, 4)
			}
			row(all...)
		}
		cells(heads...)
		for _, h := range p.hosts[:min(len(p.hosts), outlookRows)] {
			h.row(cells, h.Host, paceText(h.Declared), paceText(h.Configured), paceText(h.Visit))
		}
		p.row(cells, "all", "", "", "")
	})
	if more := len(p.hosts) - outlookRows; more > 0 {
		s.writeLine("… and %d hosts more: --output names them all", more)
	}
	s.writeLine("")
	s.writeLine("It would end after %s: %s.", about(time.Duration(p.Duration)), p.Ends)
	for _, h := range p.hosts {
		if h.Left > 0 && h.Why != "" {
			s.writeLine("%s: %d %s left, because %s", h.Host, h.Left, plural(int(h.Left)), plain(h.Why))
		}
	}
	s.writeLine("%s", sizeText(p))
	s.refusals("Would not be visited:", p.refusals, outlookRows)
	s.sightings("Refused where they were found, by reason:", p.Refused)
	s.writeLine("")
	s.writeLine("Not known, and not in it:")
	for _, what := range p.Unknown {
		s.writeLine("  - %s", what)
	}
	_, err := s.WriteTo(w)
	return err
}

// row writes one row of the table.
func (o *outlook) row(row func(...any), host, declared, configured, visit string) {
	row(host, o.Requests, o.Robots, o.TDMRep, o.Sitemaps, o.Pages, o.Left, o.Blocked, declared, configured, visit,
		approximate(o.Bytes), about(time.Duration(o.Duration)))
}

// sizeText says where the bytes of pages come from.
func sizeText(p *prospect) string {
	assumed := fmt.Sprintf("%v a page is assumed; --page-size says otherwise.", p.pageSize)
	switch p.BytesFrom {
	case sizeEarlier:
		return "Bytes: a page is taken to have what answers of its host had in the earlier crawl."
	case sizeMixed:
		return "Bytes: a page is taken to have what answers of its host had in the earlier crawl; where there were none, " + assumed
	}
	return "Bytes: " + assumed
}

// about rounds a duration for people.
func about(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Minute:
		return Duration(d.Round(time.Second)).String()
	}
	return Duration(d.Round(time.Millisecond)).String()
}
