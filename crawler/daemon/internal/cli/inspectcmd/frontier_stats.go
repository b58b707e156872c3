package inspectcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

const frontierStatsHelp = `Say how much the frontier holds, and when its next URL is due.

  queued   to be visited; put off ones included
  resting  visited, and to be visited again
  parked   closed by robots.txt or out of scope, until that changes
  seen     all that were ever queued

The states of hosts are those of decorum report.`

func NewFrontierStatsCommand(env *command.Env) *cobra.Command {
	var q crawlaccess.CrawlFlags
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
