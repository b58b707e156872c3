package inspectcmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const reportHelp = `Say how a crawl stands, host by host: the pace that was asked for and the pace
that was kept, what is closed and by which rule, and how much of what is known has
been visited. A crawl that runs, or a daemon, answers by the socket in its data
directory; of a crawl that does not run, the files are read. Nothing is sent, and
nothing of the crawl is changed.

Pace, from the end of one response of a host to the start of the next request to
it, over all runs, robots.txt and sitemaps included:
  declared    the Crawl-delay of its robots.txt
  configured  the crawl's own delay
  least       the shortest rest that the host had
  median      half of its rests were no longer, to within 10 %
  short       the most by which a rest fell short of what was owed: must be 0

Coverage is the share of the URLs known and in scope that are done: visited, or
given up after too many attempts.

The state of a host is one of
  due         a URL can be visited now
  waiting     its next URL waits for the host's rest, or for a retry
  held        its robots.txt is awaited or failed, it is outside its hours, a
              brake slows it, or its address is busy
  set aside   as held, and a crawl does not wait for it: no answer in several
              attempts, a Crawl-delay beyond max_crawl_delay, a Retry-After of
              more than a day, a refused address, a brake that stops it, or it
              has had the pages that max_pages_per_host grants, or the bytes of
              max_bytes_per_host
  resting     all is visited; a page waits for its revisit
  done        nothing is left to visit

What is refused where it is found is never queued: URLs out of scope, and those
that a site seems to make up without end. They are counted by reason, each time that
they are found: within, include, exclude, depth, scheme, url_length, and the limits
params, path_depth, path_repeat, redirects, calendar (a year far from ours),
pattern_urls, host_urls, domain_hosts, hosts and memory (links to new hosts, of a
domain or a crawl that has as many as it may have, or while memory is nearly used up).
URLs with the id of a session in their path are counted
where it is taken off: a site that has many of them made up as many URLs. A crash
may lose the count of the last minute.

What robots.txt closes is judged by the code that the crawl judges with, from
the robots.txt that is kept.

--params reads the output of the crawl instead, and suggests parameters of queries that
do not change what a page is: pairs of pages whose URLs differ in the parameter only
and have the same body, or another one, and what canonical links say. It shows the
line that one could write into robots.txt, or scope.params could say; nothing is
applied. Pages that are exact duplicates, or name another URL as canonical, are counted
by host. The crawl may be running. Memory stays below 64 MB: of more than 100,000 URLs
some are compared only.

--format json writes one object; jsonl one object a line, the totals first. All
times in them are milliseconds, or RFC 3339.`

const reportExample = `  decorum report
  decorum report --host example.com
  decorum report --params
  decorum report --format jsonl | jq -r 'select(.shortfall_ms > 0) | .host'`

// A reportOptions is what somebody wants to know of a crawl.
type reportOptions struct {
	crawlaccess.CrawlTargetFlags
	host          string
	limit         int
	suggestParams bool
}

func NewReportCommand(env *command.Env) *cobra.Command {
	var q reportOptions
	c := &cobra.Command{
		Use: "report [--host HOST]", Short: "Say how a crawl stands, host by host",
		Long: reportHelp, Example: reportExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("limit") && q.Format != "table" {
				q.limit = 0
			}
			return q.printCrawlReport(c.Context())
		},
	}
	fs := c.Flags()
	q.AddFlags(env, c, "table", "json", "jsonl")
	fs.StringVar(&q.host, "host", "", "say all that is known of one `HOST`")
	fs.IntVar(&q.limit, "limit", 20, "name `N` hosts, and as many rules, at most; 0: all (default 20 in a table, else all)")
	fs.Lookup("limit").DefValue = "0" // the usage says it
	fs.BoolVar(&q.suggestParams, "params", false, "suggest parameters that do not matter, by the output of the crawl")
	return c
}

// printCrawlReport prints the report.
func (q reportOptions) printCrawlReport(ctx context.Context) error {
	if q.limit < 0 {
		return usage.Errorf("--limit: %d is not a number of hosts", q.limit)
	}
	if q.suggestParams {
		if q.NamesDaemon() {
			return usage.Errorf("--params reads the output of a crawl: name its directory with --data alone")
		}
		return q.printParamReport(ctx)
	}
	host, err := command.ParseHostFlag(q.host)
	if err != nil {
		return err
	}
	return q.Do(ctx, func(ctx context.Context, crawl api.Inspector) error {
		return crawl.Report(ctx, api.ReportQuery{Host: host, Limit: q.limit}, q.writeReport)
	})
}

// writeReport writes what was asked for in the form that was asked for.
func (q reportOptions) writeReport(s *api.StreamedReport) error {
	w := q.Env.Stdout
	switch {
	case q.Format == "json":
		return s.WriteJSON(w)
	case q.Format == "jsonl":
		return s.WriteJSONLines(w)
	case q.host != "":
		r, err := s.FullReport()
		if err != nil {
			return err
		}
		return writeHostReport(w, r, q.limit)
	}
	return writeReportText(s, w, q.Place(), q.limit)
}

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
	p.WriteRefusalCounts("Session ids taken off where URLs were found:", s.StrippedSessionIDsByHost)
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
