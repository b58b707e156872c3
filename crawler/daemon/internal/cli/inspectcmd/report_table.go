package inspectcmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

// writeReportText writes the report for people: the totals, the hosts, what is closed.
func writeReportText(s *api.StreamedReport, w io.Writer, place string, limit int) error {
	var p reporttext.Builder
	r := &s.Totals
	p.WriteLine("The crawl in %s at %s", place, inspect.FormatTime(r.AsOf))
	p.WriteLine("")
	p.WriteTable(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", r.HostCount, hostCountsByStateText(r.HostsByState), r.OriginCount))
		writeHostTotals(row, "", &r.HostTotals)
		row("pace", reporttext.DelayShortfallText(r.LargestDelayShortfall))
	})
	p.WriteLine("")
	var heldLines reporttext.Builder
	hosts, err := writeHosts(&p, s, &heldLines)
	if err != nil {
		return err
	}
	if more := r.HostCount - hosts; more > 0 {
		p.WriteLine("… and %d hosts more: --limit 0 names them all", more)
	}
	p.Write(heldLines.Bytes())
	p.WriteParkedReasons("Parked:", r.ParkedByRule, limit)
	writeRefusalAndSessionIDCounts(&p, r)
	return p.PrintTo(w)
}

// writeHosts writes a row for each host of the report, and into heldLines a line for each that
// is held. It returns how many hosts there are.
func writeHosts(p *reporttext.Builder, s *api.StreamedReport, heldLines *reporttext.Builder) (hosts int, err error) {
	p.WriteTable(func(row func(...any)) {
		row("HOST", "STATE", "DECLARED", "CONFIGURED", "LEAST", "MEDIAN", "SHORT", "REQUESTS", "PAGES", "FAILED", "QUEUED", "RESTING", "PARKED", "COVERAGE")
		for h, hostErr := range s.Hosts {
			if err = hostErr; err != nil {
				return
			}
			hosts++
			row(h.Host, h.State, inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay), inspect.DelayText(h.MinObservedDelay), inspect.DelayText(h.MedianObservedDelay), inspect.DelayText(h.LargestDelayShortfall),
				h.Requests, h.Pages, h.Failures, h.QueuedURLs, h.AwaitingRevisit, h.ParkedURLs, formatPercent(h.Coverage))
			if !h.HeldUntil.IsZero() {
				heldLines.WriteLine("%s is %s", h.Host, hostStateText(h))
			}
		}
	})
	return hosts, err
}

// writeRefusalAndSessionIDCounts writes what was not queued as it was found.
func writeRefusalAndSessionIDCounts(p *reporttext.Builder, s *api.CrawlReport) {
	p.WriteRefusalCounts("Refused where they were found, by reason:", s.RefusalCounts)
	p.WriteRefusalCounts("Session ids taken off where URLs were found:", s.StrippedSessionIDCounts)
}

// hostCountsByStateText says how many hosts are in each state.
func hostCountsByStateText(hosts map[string]int) string {
	var parts []string
	for _, state := range inspect.HostStates {
		if n := hosts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// writeHostTotals writes a row for each number of the totals, in words.
func writeHostTotals(row func(...any), indent string, t *api.HostTotals) {
	row(indent+"requests", fmt.Sprintf("%d, pages: %d, failed: %d, %s in %v",
		t.Requests, t.Pages, t.Failures, plaintext.FormatBytes(t.Bytes), inspect.DelayText(t.RequestTime)))
	row(indent+"URLs", fmt.Sprintf("%d known, %d done, %d queued, %d resting, "+
		"%d parked (%d by robots.txt, %d out of scope)",
		t.KnownURLs, t.DoneURLs, t.QueuedURLs, t.AwaitingRevisit, t.ParkedURLs, t.BlockedByRobots, t.OutOfScope))
	row(indent+"coverage", formatPercent(t.Coverage))
	if t.PagesWithheld+int64(t.BlockedByTDMRep) > 0 {
		row(indent+"AI use", fmt.Sprintf("%d pages whose content is not to be used for the crawl's purpose, "+
			"and was not kept; %d URLs parked by tdmrep.json", t.PagesWithheld, t.BlockedByTDMRep))
	}
}

// writeHostReport writes all that a report on one host says.
func writeHostReport(w io.Writer, s *api.CrawlReport, limit int) error {
	var p reporttext.Builder
	h := s.Hosts[0]
	p.WriteLine("%s", h.Host)
	p.WriteTable(func(row func(...any)) {
		row("  state", hostStateText(h))
		row("  origins", strings.Join(h.Origins, ", "))
		row("  delay", fmt.Sprintf("declared %v, configured %v, owed after the last request %v", inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay), inspect.DelayText(h.RequiredDelay)))
		row("  kept", fmt.Sprintf("least %v, median %v, of %d rests; %s", inspect.DelayText(h.MinObservedDelay), inspect.DelayText(h.MedianObservedDelay), h.ObservedDelayCount, reporttext.DelayShortfallText(h.LargestDelayShortfall)))
		row("  slots", fmt.Sprintf("%d, failures in a row: %d", h.Slots, h.ConsecutiveFailures))
		writeHostTotals(row, "  ", &h.HostTotals)
		if !h.LastVisit.IsZero() {
			row("  last", fmt.Sprintf("%s, status %d, address %s", inspect.FormatTime(h.LastVisit), h.LastStatus, hostAddressText(h)))
		}
		for _, field := range slices.Sorted(maps.Keys(h.Override)) {
			row("  override", fmt.Sprintf("%s: %v", field, h.Override[field]))
		}
	})
	p.WriteParkedReasons("Parked:", h.ParkedByRule, limit)
	writeRefusalAndSessionIDCounts(&p, s)
	return p.PrintTo(w)
}

func hostStateText(h *api.Host) string {
	switch {
	case !h.HeldUntil.IsZero():
		return h.State + " until " + inspect.FormatTime(h.HeldUntil) + inspect.PrefixIfSet(": ", h.HoldReason)
	case !h.DueAt.IsZero():
		return fmt.Sprintf("%s, next visit at %s", h.State, inspect.FormatTime(h.DueAt))
	}
	return h.State
}

func hostAddressText(h *api.Host) string {
	if !h.Address.IsValid() {
		return "not known"
	}
	return h.Address.String()
}

func formatPercent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
