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

const frontierListHelp = `List the URLs of the frontier, one a line: its state, when it can be visited, the
URL, and why it waits or is parked, separated by tabs. Within an origin they come
in the order in which they would be visited.

  queued   to be visited; the time is that of its next attempt, if it was put off
  resting  visited; the time is that of its revisit
  parked   closed by robots.txt, or out of scope

--format jsonl writes all that is kept of each URL, one object a line; decorum
frontier add reads that too.`

const frontierListExample = `  decorum frontier list --host example.com --limit 20
  decorum frontier list --state parked
  decorum frontier list --state queued --format jsonl | jq -r .url`

// A frontierListOptions is which URLs somebody wants to see.
type frontierListOptions struct {
	crawlaccess.CrawlTargetFlags
	api.FrontierURLQuery
}

func NewFrontierListCommand(env *command.Env) *cobra.Command {
	var q frontierListOptions
	c := &cobra.Command{
		Use: "list", Short: "List the URLs of a crawl's frontier", Long: frontierListHelp,
		Example: frontierListExample, Args: command.ArgsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return q.listFrontier(c.Context()) },
	}
	fs := c.Flags()
	q.AddFlags(env, c, "table", "jsonl")
	fs.StringVar(&q.Host, "host", "", "only of this `HOST`")
	fs.StringVar(&q.Origin, "origin", "", "only of this `ORIGIN`, as https://example.com")
	fs.StringVar(&q.State, "state", "", "only in this `STATE`: queued, resting or parked")
	fs.IntVar(&q.Limit, "limit", 0, "list `N` URLs at most; 0: all")
	return c
}

// checkQuery checks what the flags ask for, and puts it into canonical form.
func (q *frontierListOptions) checkQuery() (err error) {
	switch {
	case q.State != "" && !slices.Contains(inspect.StateNames[:], q.State):
		return usage.Errorf("--state: %q is not one of queued, resting, parked", q.State)
	case q.Limit < 0:
		return usage.Errorf("--limit: %d is not a number of URLs", q.Limit)
	case q.Origin != "":
		u, err := decorum.ParseURL(q.Origin)
		if err != nil || u.PathAndQuery() != "/" {
			return usage.Errorf("--origin: %q is not an origin, as https://example.com", q.Origin)
		}
		q.Origin = u.Origin().String()
	}
	q.Host, err = command.ParseHostFlag(q.Host)
	return err
}

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
				return cmp.Or(err, w.Flush())
			}
		}
		return w.Flush()
	})
}

// writeFrontierURL writes a line for people.
func writeFrontierURL(w io.Writer, u *api.FrontierURL) error {
	at := "-"
	if !u.NotBefore.IsZero() {
		at = inspect.FormatTime(u.NotBefore)
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.State, at, u.URL, u.Reason)
	return err
}

const frontierStatsHelp = `Say how much the frontier holds, and when its next URL is due.

  queued   to be visited; put off ones included
  resting  visited, and to be visited again
  parked   closed by robots.txt or out of scope, until that changes
  seen     all that were ever queued

The states of hosts are those of decorum report.`

func NewFrontierStatsCommand(env *command.Env) *cobra.Command {
	var q crawlaccess.CrawlTargetFlags
	c := &cobra.Command{
		Use: "stats", Short: "Say how much a crawl's frontier holds", Long: frontierStatsHelp,
		Example: "  decorum frontier stats\n  decorum frontier stats --format json | jq .queued", Args: command.ArgsOrUsageError(cobra.NoArgs),
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

// writeFrontierStats writes the numbers of a frontier as a table.
func writeFrontierStats(w io.Writer, s *api.FrontierStats) error {
	var p reporttext.Builder
	p.WriteTable(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", s.HostCount, hostCountsByStateText(s.HostsByState), s.OriginCount))
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
			row(f.Name, fmt.Sprintf("%s, %s of them free", plaintext.FormatBytes(f.Bytes), plaintext.FormatBytes(f.FreeBytes)))
		}
	})
	return p.PrintTo(w)
}
