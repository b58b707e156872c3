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

const reportHelp = `Report the state of a crawl, host by host: the required pace and the actual pace, what
is blocked and by which rule, and the share of the known URLs that were visited. If the
crawl or its daemon runs, the command calls it through the socket in the data
directory; else it reads the crawl's files. It sends no request to a site, and changes
nothing.

Pace is measured from the end of one response of a host to the start of the next
request to it, over all runs, including robots.txt and sitemaps:
  declared    the Crawl-delay of the host's robots.txt
  configured  the crawl's own delay
  least       the shortest delay that the host got
  median      half of its delays were at most this long, to within 10 %
  short       the largest shortfall of a delay below the required one: must be 0

Traffic is what the crawl cost a host, over all runs: the bytes that its connections
carried (headers, bodies as sent and TLS handshakes, without TCP and IP), and the
connections that were opened. Saved is what compression and answers 304 spared it.

Coverage is the share of the known URLs in scope that are done: visited, or given up
after too many attempts.

The state of a host is one of
  due         a URL can be visited now
  waiting     its next URL waits for the host's delay, or for a retry
  held        its robots.txt is awaited or failed, it is outside its visit hours, a
              brake slows it, or its address is busy
  set aside   as held, but the crawl does not wait for it: no answer in several
              attempts, a Crawl-delay above max_crawl_delay, a Retry-After of more
              than a day, a refused address, a brake that stops it, or a host that
              has reached max_pages_per_host or max_bytes_per_host
  resting     all URLs are visited; a page waits for its revisit
  done        no URL is left to visit

The crawl never queues a URL that it refuses when it finds it: a URL out of scope, or
one of a site that seems to generate URLs without end. The report counts refusals by
reason, each time that a URL is found: within, include, exclude, depth, depth_chain (the
next page of a list, beyond max_depth), scheme, url_length, and the limits params,
path_depth, path_repeat, redirects, calendar (a year far from ours), pattern_urls,
sort_links (links that only sort a list), feeds (that pages announce), host_urls,
domain_hosts, hosts and memory (the last three refuse links to new hosts: of a domain or
a crawl that has reached its limit of hosts, or while memory is nearly used up). The
crawl strips session IDs from URLs and counts these URLs by host: a high count shows a
site that generates URLs. A crash may lose the counts of the last minute.

The report also counts what the crawl did not follow, which is no part of the coverage:
links that pages ask robots not to follow (nofollow), and pages without links that a
browser would fill by their scripts (needs_rendering).

The report applies the cached robots.txt files with the crawl's own code.

--params reads the crawl's output instead, and suggests query parameters that do not
change the page. It compares pages whose URLs differ only in one parameter, by their
bodies and their canonical links. It shows the line to add to robots.txt or to
scope.params, and applies nothing. It also lists parameters that may be session IDs by
their names, such as a short sid, where pages differ by them. It also counts, by host,
pages that are exact duplicates or name another URL as canonical, and what links that
only sort a list (sort_links), and feeds that pages announce (feeds), have cost, with a
setting for the project file that leaves nearly all of them out. The crawl may be
running. Memory stays below 64 MB: beyond 100,000 URLs, --params compares a sample.

--format json writes one object, jsonl one object a line, the totals first. All
durations in them are in milliseconds, all times in RFC 3339.`

const reportExample = `  decorum report
  decorum report --host example.com
  decorum report --params
  decorum report --format jsonl | jq -r 'select(.shortfall_ms > 0) | .host'`

// A reportOptions holds the flags of decorum report.
type reportOptions struct {
	crawlaccess.CrawlTargetFlags
	host          string // empty: all hosts
	limit         int    // of hosts and of rules; 0: all
	suggestParams bool
}

// NewReportCommand returns the command decorum report.
func NewReportCommand(env *command.Env) *cobra.Command {
	var q reportOptions
	c := &cobra.Command{
		Use: "report [--host HOST]", Short: "Report the state of a crawl, host by host",
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
	fs.StringVar(&q.host, "host", "", "report all that is known of `HOST` (default: a summary of all hosts)")
	fs.IntVar(&q.limit, "limit", 20, "list at most `N` hosts, and at most N rules; 0: all (default 20 in a table, "+
		"else all)")
	fs.Lookup("limit").DefValue = "0" // the usage text has the default
	fs.BoolVar(&q.suggestParams, "params", false,
		"suggest query parameters that do not change pages, from the crawl's output")
	return c
}

// printCrawlReport prints the report that the flags select.
func (q reportOptions) printCrawlReport(ctx context.Context) error {
	if q.limit < 0 {
		return usage.Errorf("--limit: %d is not a number of hosts", q.limit)
	}
	if q.suggestParams {
		if q.NamesDaemon() {
			return usage.Errorf("--params reads the output of a crawl: use it with --data only")
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

// writeReport writes the report s in the format of the flags.
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

// writeReportText writes the report as text: the totals, a table of hosts, the hosts that are held,
// the parked URLs and the refusals.
func writeReportText(s *api.StreamedReport, w io.Writer, place string, limit int) error {
	var p reporttext.Builder
	r := &s.Totals
	p.WriteLine("The crawl in %s at %s", place, inspect.FormatTime(r.AsOf))
	p.WriteLine("")
	p.WriteTable(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", r.HostCount,
			hostCountsByStateText(r.HostsByState), r.OriginCount))
		writeHostTotals(row, "", &r.HostTotals)
		row("pace", reporttext.DelayShortfallText(r.LargestDelayShortfall))
	})
	p.WriteLine("")
	// The lines of held hosts follow the table of all hosts, but the hosts can be read only once.
	var heldLines reporttext.Builder
	hosts, err := writeHosts(&p, s, &heldLines)
	if err != nil {
		return err
	}
	if more := r.HostCount - hosts; more > 0 {
		p.WriteLine("… and %d more hosts: --limit 0 lists all", more)
	}
	p.Write(heldLines.Bytes())
	p.WriteParkedReasons("Parked:", r.ParkedByRule, limit)
	writeRefusalAndSessionIDCounts(&p, r)
	return p.PrintTo(w)
}

// writeHosts writes to p a row for each host of the report, and to heldLines a line for each held
// host. It returns the number of hosts.
func writeHosts(p *reporttext.Builder, s *api.StreamedReport, heldLines *reporttext.Builder) (hosts int, err error) {
	p.WriteTable(func(row func(...any)) {
		row("HOST", "STATE", "DECLARED", "CONFIGURED", "LEAST", "MEDIAN", "SHORT", "REQUESTS", "PAGES", "FAILED",
			"QUEUED", "RESTING", "PARKED", "COVERAGE")
		for h, hostErr := range s.Hosts {
			if err = hostErr; err != nil {
				return
			}
			hosts++
			row(h.Host, h.State, inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay),
				inspect.DelayText(h.MinObservedDelay), inspect.DelayText(h.MedianObservedDelay),
				inspect.DelayText(h.LargestDelayShortfall),
				h.Requests, h.Pages, h.Failures, h.QueuedURLs, h.AwaitingRevisit,
				h.ParkedURLs, formatPercent(h.Coverage))
			if !h.HeldUntil.IsZero() {
				heldLines.WriteLine("%s is %s", h.Host, hostStateText(h))
			}
		}
	})
	return hosts, err
}

// writeRefusalAndSessionIDCounts writes the URLs that were refused or changed when they were found.
func writeRefusalAndSessionIDCounts(p *reporttext.Builder, s *api.CrawlReport) {
	p.WriteRefusalCounts("Refused when found, by reason:", s.RefusalCounts)
	p.WriteClosedPatterns(s.ClosedPatterns)
	p.WriteRefusalCounts("Not followed, and so not part of the coverage:", s.NotFollowed)
	p.WriteRefusalCounts("Session IDs stripped from URLs when found:", s.StrippedSessionIDsByHost)
}

// hostCountsByStateText lists the states with the number of hosts in each; states without hosts are
// left out.
func hostCountsByStateText(hosts map[string]int) string {
	var parts []string
	for _, state := range inspect.HostStates {
		if n := hosts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// writeHostTotals writes the rows of the totals t, with indent before their labels.
func writeHostTotals(row func(...any), indent string, t *api.HostTotals) {
	row(indent+"requests", fmt.Sprintf("%d, pages: %d, failed: %d, %s in %v",
		t.Requests, t.Pages, t.Failures, plaintext.FormatBytes(t.Bytes), inspect.DelayText(t.RequestTime)))
	row(indent+"traffic", reporttext.TrafficText(&t.HostTraffic))
	row(indent+"saved", reporttext.SavedBytesText(&t.HostTraffic))
	row(indent+"URLs", fmt.Sprintf("%d known, %d done, %d queued, %d resting, "+
		"%d parked (%d by robots.txt, %d out of scope)",
		t.KnownURLs, t.DoneURLs, t.QueuedURLs, t.AwaitingRevisit, t.ParkedURLs, t.BlockedByRobots, t.OutOfScope))
	row(indent+"coverage", fmt.Sprintf("%s of the known URLs in scope are done; failed requests: %d",
		formatPercent(t.Coverage), t.Failures))
	if t.PagesWithheld+int64(t.BlockedByTDMRep) > 0 {
		row(indent+"AI use", fmt.Sprintf("%d pages whose site does not permit the crawl's purpose, "+
			"whose content was not kept; %d URLs parked by tdmrep.json", t.PagesWithheld, t.BlockedByTDMRep))
	}
}

// writeHostReport writes the report s, which is on one host, with at most limit rules (0: all).
func writeHostReport(w io.Writer, s *api.CrawlReport, limit int) error {
	var p reporttext.Builder
	h := s.Hosts[0]
	p.WriteLine("%s", h.Host)
	p.WriteTable(func(row func(...any)) {
		row("  state", hostStateText(h))
		row("  origins", strings.Join(h.Origins, ", "))
		row("  delay", hostDelaysText(h))
		row("  kept", fmt.Sprintf("least %v, median %v, of %d delays; %s", inspect.DelayText(h.MinObservedDelay),
			inspect.DelayText(h.MedianObservedDelay), h.ObservedDelayCount,
			reporttext.DelayShortfallText(h.LargestDelayShortfall)))
		row("  slots", fmt.Sprintf("%d, failures in a row: %d", h.Slots, h.ConsecutiveFailures))
		if h.BackoffReason != "" {
			row("  rest", h.BackoffReason)
		}
		for _, page := range h.FailedPages {
			row("  failed page", fmt.Sprintf("status %d, %s", page.Status, page.URL))
		}
		writeHostTotals(row, "  ", &h.HostTotals)
		if !h.LastVisit.IsZero() {
			row("  last", fmt.Sprintf("%s, status %d, address %s", inspect.FormatTime(h.LastVisit),
				h.LastStatus, hostAddressText(h)))
		}
		for _, field := range slices.Sorted(maps.Keys(h.Override)) {
			row("  override", fmt.Sprintf("%s: %v", field, h.Override[field]))
		}
	})
	p.WriteParkedReasons("Parked:", h.ParkedByRule, limit)
	writeRefusalAndSessionIDCounts(&p, s)
	return p.PrintTo(w)
}

// hostDelaysText lists the delays of a host: the learned one only if there is one.
func hostDelaysText(h *api.Host) string {
	learned := ""
	if h.LearnedDelay > 0 {
		learned = fmt.Sprintf("learned %v, ", inspect.DelayText(h.LearnedDelay))
	}
	return fmt.Sprintf("declared %v, configured %v, %srequired after the last request %v",
		inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay), learned,
		inspect.DelayText(h.RequiredDelay))
}

// hostStateText returns the state of a host, with the end and the reason of a hold, or the time of the
// next visit.
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
