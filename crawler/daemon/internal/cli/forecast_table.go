package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// maxForecastRows is how many hosts, and rules, the table of a forecast names.
const maxForecastRows = 20

// writeJSONL writes the totals, and then each host, on lines of their own.
func (p *dryRunForecast) writeJSONL(out *sinks.JSONLRecorder) error {
	e := jsonline.NewEncoder(out)
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
func (p *dryRunForecast) writeTable(w io.Writer) error {
	var s reporttext.Builder
	s.WriteLine("Forecast of the crawl, from robots.txt files and sitemaps alone, as of %s:", inspect.FormatTime(p.StartedAt))
	s.WriteLine("")
	s.WriteTable(func(row func(...any)) {
		heads := []any{"HOST", "REQUESTS", "ROBOTS", "TDMREP", "SITEMAPS", "PAGES", "LEFT", "BLOCKED", "DECLARED", "CONFIGURED", "A VISIT", "BYTES", "DURATION"}
		cells := func(all ...any) {
			if p.TDMRepRequests == 0 {
				all = slices.Delete(all, 3, 4)
			}
			row(all...)
		}
		cells(heads...)
		for _, h := range p.hosts[:min(len(p.hosts), maxForecastRows)] {
			h.writeForecastRow(cells, h.Host, inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay), inspect.DelayText(h.VisitDuration))
		}
		p.writeForecastRow(cells, "all", "", "", "")
	})
	if more := len(p.hosts) - maxForecastRows; more > 0 {
		s.WriteLine("… and %d hosts more: --output names them all", more)
	}
	s.WriteLine("")
	s.WriteLine("It would end after %s: %s.", roundedDurationText(time.Duration(p.Duration)), p.EndReason)
	for _, h := range p.hosts {
		if h.PagesLeft > 0 && h.PagesLeftReason != "" {
			s.WriteLine("%s: %d %s left, because %s", h.Host, h.PagesLeft, reporttext.URLNoun(int(h.PagesLeft)), plaintext.ReplaceControlChars(h.PagesLeftReason))
		}
	}
	s.WriteLine("%s", bytesSourceText(p))
	s.WriteParkedReasons("Would not be visited:", p.parkedByRule, maxForecastRows)
	s.WriteRefusalCounts("Refused where they were found, by reason:", p.RefusalCounts)
	s.WriteLine("")
	s.WriteLine("Not known, and not in it:")
	for _, what := range p.Unknowns {
		s.WriteLine("  - %s", what)
	}
	return s.PrintTo(w)
}

// writeForecastRow writes one row of the table.
func (o *forecastStats) writeForecastRow(row func(...any), host, crawlDelay, configuredDelay, visitTime string) {
	row(host, o.Requests, o.RobotsRequests, o.TDMRepRequests, o.SitemapRequests, o.PageRequests, o.PagesLeft, o.BlockedURLs, crawlDelay, configuredDelay, visitTime,
		plaintext.FormatBytes(o.Bytes), roundedDurationText(time.Duration(o.Duration)))
}

// bytesSourceText says where the bytes of pages come from.
func bytesSourceText(p *dryRunForecast) string {
	assumed := fmt.Sprintf("%v a page is assumed; --page-size says otherwise.", p.assumedPageSize)
	switch p.BytesSource {
	case bytesFromEarlierCrawl:
		return "Bytes: a page is taken to have what answers of its host had in the earlier crawl."
	case bytesFromBoth:
		return "Bytes: a page is taken to have what answers of its host had in the earlier crawl; where there were none, " + assumed
	}
	return "Bytes: " + assumed
}

// roundedDurationText rounds a duration for people.
func roundedDurationText(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Minute:
		return project.Duration(d.Round(time.Second)).String()
	}
	return project.Duration(d.Round(time.Millisecond)).String()
}
