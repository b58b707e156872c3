package inspectcmd

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
)

const frontierListHelp = `List the URLs of the frontier, one a line: the state, the time of the next visit, the
URL, and why it waits or is parked, separated by tabs. The URLs of an origin come in
the order in which the crawl would visit them.

  queued   waiting for a visit; the time, if any, is that of the next attempt
  resting  visited; the time is that of the revisit
  parked   disallowed by robots.txt, or out of scope

--format jsonl writes all that the frontier keeps of each URL, one JSON object a line.
decorum frontier add reads this format.`

const frontierListExample = `  decorum frontier list --host example.com --limit 20
  decorum frontier list --state parked
  decorum frontier list --state queued --format jsonl | jq -r .url`

// A frontierListOptions holds the flags of decorum frontier list.
type frontierListOptions struct {
	crawlaccess.CrawlTargetFlags
	api.FrontierURLQuery
}

// NewFrontierListCommand returns the command decorum frontier list.
func NewFrontierListCommand(env *command.Env) *cobra.Command {
	var q frontierListOptions
	c := &cobra.Command{
		Use: "list", Short: "List the URLs of a crawl's frontier", Long: frontierListHelp,
		Example: frontierListExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return q.listFrontier(c.Context()) },
	}
	fs := c.Flags()
	q.AddFlags(env, c, "table", "jsonl")
	fs.StringVar(&q.Host, "host", "", "list only URLs of `HOST` (default: all hosts)")
	fs.StringVar(&q.Origin, "origin", "", "list only URLs of `ORIGIN`, as https://example.com (default: all origins)")
	fs.StringVar(&q.State, "state", "", "list only URLs in `STATE`: queued, resting or parked (default: all states)")
	fs.IntVar(&q.Limit, "limit", 0, "list at most `N` URLs; 0: all (default 0)")
	return c
}

// checkQuery puts the host and the origin of the query into canonical form. It returns a usage
// error if a flag has an invalid value.
func (q *frontierListOptions) checkQuery() (err error) {
	switch {
	case q.State != "" && !slices.Contains(inspect.StateNames[:], q.State):
		return usage.Errorf("--state: %q is not one of queued, resting, parked", q.State)
	case q.Limit < 0:
		return usage.Errorf("--limit: %d is not a number of URLs", q.Limit)
	case q.Origin != "":
		u, err := decorum.ParseURL(q.Origin)
		if err != nil || u.PathAndQuery() != "/" {
			return usage.Errorf("--origin: %q is not an origin such as https://example.com", q.Origin)
		}
		q.Origin = u.Origin().String()
	}
	q.Host, err = command.ParseHostFlag(q.Host)
	return err
}

// listFrontier prints the URLs that the flags select.
func (q frontierListOptions) listFrontier(ctx context.Context) error {
	if err := q.checkQuery(); err != nil {
		return err
	}
	return q.Do(ctx, func(ctx context.Context, crawl api.Inspector) error {
		w := bufio.NewWriterSize(q.Env.Stdout, 1<<16)
		encoder := jsonline.NewEncoder(w)
		for u, err := range crawl.FrontierURLs(ctx, q.FrontierURLQuery) {
			switch {
			case err != nil:
			case q.Format == "jsonl":
				err = encoder.Encode(u)
			default:
				err = writeFrontierURL(w, u)
			}
			if err != nil {
				return cmp.Or(err, w.Flush()) // print what was read before the error
			}
		}
		return w.Flush()
	})
}

// writeFrontierURL writes the line of u in the format table; "-" stands for a missing time.
func writeFrontierURL(w io.Writer, u *api.FrontierURL) error {
	at := "-"
	if !u.NotBefore.IsZero() {
		at = inspect.FormatTime(u.NotBefore)
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.State, at, u.URL, u.Reason)
	return err
}

const frontierStatsHelp = `Count the URLs and hosts of the frontier, and print when its next URL is due.

  queued   URLs waiting for a visit, including retries that wait
  resting  URLs that were visited and wait for their revisit
  parked   URLs that robots.txt disallows or the scope excludes, until that changes
  seen     all URLs that were ever queued

The states of hosts are those of decorum report.`

// NewFrontierStatsCommand returns the command decorum frontier stats.
func NewFrontierStatsCommand(env *command.Env) *cobra.Command {
	var q crawlaccess.CrawlTargetFlags
	c := &cobra.Command{
		Use: "stats", Short: "Count the URLs of a crawl's frontier", Long: frontierStatsHelp,
		Example: "  decorum frontier stats\n  decorum frontier stats --format json | jq .queued",
		Args:    command.ArgsOrUsageError(cobra.NoArgs),
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		return q.Do(c.Context(), func(ctx context.Context, crawl api.Inspector) error {
			s, err := crawl.FrontierStats(ctx)
			if err != nil {
				return err
			}
			if q.Format == "json" {
				return jsonline.WriteIndented(env.Stdout, s)
			}
			return writeFrontierStats(env.Stdout, s)
		})
	}
	q.AddFlags(env, c, "table", "json")
	return c
}

// writeFrontierStats writes the counts of a frontier and the sizes of its files as a table.
func writeFrontierStats(w io.Writer, s *api.FrontierStats) error {
	var p reporttext.Builder
	p.WriteTable(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", s.HostCount,
			hostCountsByStateText(s.HostsByState), s.OriginCount))
		row("queued", fmt.Sprintf("%d, of them set aside: %d", s.QueuedURLs, s.SuspendedURLs))
		row("resting", s.AwaitingRevisit)
		row("parked", s.ParkedURLs)
		row("seen", s.SeenURLs)
		if !s.NextDueAt.IsZero() {
			row("next due", inspect.FormatTime(s.NextDueAt))
		}
		if !s.DueSince.IsZero() {
			row("due since", inspect.FormatTime(s.DueSince))
		}
		for _, f := range s.StoreFiles {
			row(f.Name, fmt.Sprintf("%s, %s of them free", plaintext.FormatBytes(f.Bytes),
				plaintext.FormatBytes(f.FreeBytes)))
		}
	})
	return p.PrintTo(w)
}
