package inspectcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
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
	crawlaccess.CrawlFlags
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
