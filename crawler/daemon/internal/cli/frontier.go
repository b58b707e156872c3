package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

const frontierHelp = `Look into the frontier of a crawl, its queues and what it has seen, add to it, and
move it to another store.
The crawl must not be running: stop it first, --resume goes on. Nothing is sent.`

func (a *program) newFrontierCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "frontier", Short: "Look into a crawl's queues, add to them, move them", Long: frontierHelp,
		Args: rejectUnknownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newFrontierStatsCommand(), a.newFrontierListCommand(), a.newFrontierAddCommand(), a.newFrontierExportCommand(),
		a.newFrontierImportCommand(), a.newFrontierCompactCommand())
	return c
}

const frontierStatsHelp = `Say how much the frontier holds, and when its next URL is due.

  queued   to be visited; put off ones included
  resting  visited, and to be visited again
  parked   closed by robots.txt or out of scope, until that changes
  seen     all that were ever queued

The states of hosts are those of decorum report.`

func (a *program) newFrontierStatsCommand() *cobra.Command {
	var dataDir, format string
	c := &cobra.Command{
		Use: "stats", Short: "Say how much a crawl's frontier holds", Long: frontierStatsHelp,
		Example: "  decorum frontier stats\n  decorum frontier stats --format json | jq .queued", Args: argsOrUsageError(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.printFrontierStats(c.Context(), dataDir, format) },
	}
	addDataFlag(c.Flags(), &dataDir)
	c.Flags().StringVar(&format, "format", "table", "write `FORMAT`: table or json")
	return c
}

func (a *program) printFrontierStats(ctx context.Context, dataDir, format string) error {
	if err := checkFormat(format, "table", "json"); err != nil {
		return err
	}
	return a.openStoppedCrawlAndDo(ctx, dataDir, func(ctx context.Context, k *stoppedCrawl) error {
		s, err := k.frontierStats(ctx)
		if err != nil {
			return err
		}
		if format == "json" {
			return jsonline.WriteIndented(a.Stdout, s)
		}
		return writeFrontierStats(a.Stdout, s)
	})
}

// writeFrontierStats writes the numbers of a frontier as a table.
func writeFrontierStats(w io.Writer, s *inspect.FrontierStats) error {
	var p textBuilder
	p.writeTable(func(row func(...any)) {
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
	_, err := p.WriteTo(w)
	return err
}

// frontierStats returns the numbers of the frontier and of its files.
func (k *stoppedCrawl) frontierStats(ctx context.Context) (*inspect.FrontierStats, error) {
	s, err := k.CountFrontier(ctx)
	if err == nil {
		s.StoreFiles, err = k.readStoreFileStats()
	}
	return s, err
}

// readStoreFileStats tells how large the files of the crawl are.
func (k *stoppedCrawl) readStoreFileStats() (files []inspect.StoreFileStats, err error) {
	for _, f := range []struct {
		name  string
		store storage.NoteStore
	}{{datadir.StoreFile, k.FrontierStore}, {datadir.RobotsFile, k.robotsStore}} {
		file, ok := f.store.(interface {
			FileStats() (bolt.FileStats, error)
		})
		if !ok {
			continue // in memory: there is none
		}
		stats, err := file.FileStats()
		if err != nil {
			return nil, err
		}
		files = append(files, inspect.StoreFileStats{Name: f.name, Bytes: stats.Size, FreeBytes: stats.FreeBytes})
	}
	return files, nil
}
