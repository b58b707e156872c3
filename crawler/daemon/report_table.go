package daemon

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
)

// A sheet is text for people, in the making.
type sheet struct{ bytes.Buffer }

func (s *sheet) writeLine(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// table writes rows in columns.
func (s *sheet) table(rows func(row func(cells ...any))) {
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = fmt.Sprint(c)
		}
		fmt.Fprintln(t, strings.Join(texts, "\t"))
	})
	t.Flush() // into memory: it cannot fail
}

// write writes the report for people: the totals, the hosts, what is closed.
func (s *survey) write(ctx context.Context, w io.Writer, data string, limit int) error {
	var p sheet
	r := &s.totals
	p.writeLine("The crawl in %s at %s", data, clock(r.AsOf))
	p.writeLine("")
	p.table(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", r.HostCount, statesText(r.HostsByState), r.OriginCount))
		for _, t := range tallyRows(&r.HostTotals) {
			row(t[0], t[1])
		}
		row("pace", shortText(r.LargestDelayShortfall))
	})
	p.writeLine("")
	var holds sheet
	if err := p.hosts(ctx, s, &holds); err != nil {
		return err
	}
	if more := r.HostCount - len(s.hosts.ranked); more > 0 {
		p.writeLine("… and %d hosts more: --limit 0 names them all", more)
	}
	p.Write(holds.Bytes())
	p.refusals("Parked:", r.ParkedByRule, limit)
	p.sighted(r)
	_, err := p.WriteTo(w)
	return err
}

// hosts writes a row for each host of the report, and into holds a line for each that
// is held.
func (p *sheet) hosts(ctx context.Context, s *survey, holds *sheet) (err error) {
	p.table(func(row func(...any)) {
		row("HOST", "STATE", "DECLARED", "CONFIGURED", "LEAST", "MEDIAN", "SHORT", "REQUESTS", "PAGES", "FAILED", "QUEUED", "RESTING", "PARKED", "COVERAGE")
		err = s.each(ctx, func(h *api.Host) error {
			row(h.Host, h.State, paceText(h.CrawlDelay), paceText(h.ConfiguredDelay), paceText(h.MinObservedDelay), paceText(h.MedianObservedDelay), paceText(h.LargestDelayShortfall),
				h.Requests, h.Pages, h.Failures, h.QueuedURLs, h.AwaitingRevisit, h.ParkedURLs, percent(h.Coverage))
			if !h.HeldUntil.IsZero() {
				holds.writeLine("%s is %s until %s%s", h.Host, h.State, clock(h.HeldUntil), because(h.HoldReason))
			}
			return nil
		})
	})
	return err
}

// sighted writes what was not queued as it was found.
func (p *sheet) sighted(s *api.Report) {
	p.sightings("Refused where they were found, by reason:", s.RefusalCounts)
	p.sightings("Session ids taken off where URLs were found:", s.SessionIDCounts)
}

func (p *sheet) sightings(title string, list []frontier.Sighted) {
	if len(list) == 0 {
		return
	}
	p.writeLine("")
	p.writeLine("%s", title)
	p.table(func(row func(...any)) {
		for _, r := range list {
			row(fmt.Sprintf("%8d", r.Count), r.Reason, cmp.Or(r.Host, "various hosts"), plain(r.Why), "such as "+r.Example)
		}
	})
}

// statesText says how many hosts are in each state.
func statesText(hosts map[string]int) string {
	var parts []string
	for _, state := range states {
		if n := hosts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// tallyRows returns what the tally says, in words.
func tallyRows(t *api.HostTotals) [][2]string {
	rows := [][2]string{
		{"requests", fmt.Sprintf("%d, pages: %d, failed: %d, %s in %v", t.Requests, t.Pages, t.Failures, approximate(t.Bytes), paceText(t.RequestTime))},
		{"URLs", fmt.Sprintf("%d known, %d done, %d queued, %d resting, %d parked (%d by robots.txt, %d out of scope)",
			t.KnownURLs, t.DoneURLs, t.QueuedURLs, t.AwaitingRevisit, t.ParkedURLs, t.BlockedByRobots, t.OutOfScope)},
		{"coverage", percent(t.Coverage)},
	}
	if t.PagesWithheld+int64(t.BlockedByTDMRep) > 0 {
		rows = append(rows, [2]string{"AI use", fmt.Sprintf("%d pages whose content is not to be used for the crawl's purpose, and was not kept; %d URLs parked by tdmrep.json",
			t.PagesWithheld, t.BlockedByTDMRep)})
	}
	return rows
}

func shortText(short api.Milliseconds) string {
	if short == 0 {
		return "no rest was cut short"
	}
	return fmt.Sprintf("a rest was cut short by %v", paceText(short))
}

// refusals writes why URLs are parked.
func (p *sheet) refusals(title string, rs []api.RefusalSummary, limit int) {
	if len(rs) == 0 {
		return
	}
	p.writeLine("")
	p.writeLine("%s", title)
	p.table(func(row func(...any)) {
		for i, r := range rs {
			if i == limit && limit > 0 {
				break
			}
			row(fmt.Sprintf("%8d %s", r.URLCount, plural(r.URLCount)), refusalText(r), rulePlace(r))
		}
	})
}

// refusalText says why URLs are parked.
func refusalText(r api.RefusalSummary) string {
	if r.RefusedBy == whyScope {
		return "out of scope: " + r.Rule
	}
	return r.Rule
}

// rulePlace says where the rule stands.
func rulePlace(r api.RefusalSummary) string {
	switch {
	case r.RuleFileURL == "":
		return ""
	case r.RuleLine == 0:
		return r.RuleFileURL
	}
	return fmt.Sprintf("%s (line %d)", r.RuleFileURL, r.RuleLine)
}

// writeHost writes all that a report on one host says.
func writeHost(w io.Writer, s *api.Report, limit int) error {
	var p sheet
	h := s.Hosts[0]
	p.writeLine("%s", h.Host)
	p.table(func(row func(...any)) {
		row("  state", hostStateText(h))
		row("  origins", strings.Join(h.Origins, ", "))
		row("  delay", fmt.Sprintf("declared %v, configured %v, owed after the last request %v", paceText(h.CrawlDelay), paceText(h.ConfiguredDelay), paceText(h.RequiredDelay)))
		row("  kept", fmt.Sprintf("least %v, median %v, of %d rests; %s", paceText(h.MinObservedDelay), paceText(h.MedianObservedDelay), h.ObservedDelayCount, shortText(h.LargestDelayShortfall)))
		row("  slots", fmt.Sprintf("%d, failures in a row: %d", h.Slots, h.ConsecutiveFailures))
		for _, r := range tallyRows(&h.HostTotals) {
			row("  "+r[0], r[1])
		}
		if !h.LastVisit.IsZero() {
			row("  last", fmt.Sprintf("%s, status %d, address %s", clock(h.LastVisit), h.LastStatus, address(h)))
		}
		for _, field := range slices.Sorted(maps.Keys(h.Override)) {
			row("  override", fmt.Sprintf("%s: %v", field, h.Override[field]))
		}
	})
	p.refusals("Parked:", h.ParkedByRule, limit)
	p.sighted(s)
	_, err := p.WriteTo(w)
	return err
}

func hostStateText(h *api.Host) string {
	switch {
	case !h.HeldUntil.IsZero():
		return fmt.Sprintf("%s until %s%s", h.State, clock(h.HeldUntil), because(h.HoldReason))
	case !h.DueAt.IsZero():
		return fmt.Sprintf("%s, next visit at %s", h.State, clock(h.DueAt))
	}
	return h.State
}

func address(h *api.Host) string {
	if !h.Address.IsValid() {
		return "not known"
	}
	return h.Address.String()
}

// paceText rounds a rest for people.
func paceText(m api.Milliseconds) string {
	d := time.Duration(m)
	switch {
	case d == 0:
		return "-"
	case d >= 10*time.Second:
		return Duration(d.Round(time.Second)).String()
	}
	return Duration(d.Round(time.Millisecond)).String()
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func plural(urls int) string {
	if urls == 1 {
		return "URL"
	}
	return "URLs"
}
