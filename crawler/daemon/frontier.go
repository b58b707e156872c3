package daemon

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/plaintext"
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

// frontierStats are the numbers of a frontier.
type frontierStats struct {
	At              time.Time        `json:"at"`
	HostCount       int              `json:"host_count"`
	OriginCount     int              `json:"origin_count"`
	HostsByState    map[string]int   `json:"states"` // hosts in each
	QueuedURLs      int              `json:"queued"`
	AwaitingRevisit int              `json:"resting"`
	ParkedURLs      int              `json:"parked"`
	SeenURLs        int              `json:"seen"`
	SuspendedURLs   int              `json:"set_aside"`          // of QueuedURLs: of hosts that are set aside
	NextDueAt       time.Time        `json:"next_due,omitzero"`  // when the next URL can be visited, if none can now
	DueSince        time.Time        `json:"due_since,omitzero"` // since when the host waits that is due longest
	StoreFiles      []storeFileStats `json:"files"`
}

type storeFileStats struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	FreeBytes int64  `json:"free_bytes"` // of them, which compact gives back, about
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
			return writeJSON(a.stdout, s)
		}
		return s.writeTable(a.stdout)
	})
}

// writeTable writes the numbers for people.
func (s *frontierStats) writeTable(w io.Writer) error {
	var p textBuilder
	p.writeTable(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", s.HostCount, hostCountsByStateText(s.HostsByState), s.OriginCount))
		row("queued", fmt.Sprintf("%d, of them set aside: %d", s.QueuedURLs, s.SuspendedURLs))
		row("resting", s.AwaitingRevisit)
		row("parked", s.ParkedURLs)
		row("seen", s.SeenURLs)
		if !s.NextDueAt.IsZero() {
			row("next due", FormatTime(s.NextDueAt))
		}
		if !s.DueSince.IsZero() {
			row("due since", FormatTime(s.DueSince))
		}
		for _, f := range s.StoreFiles {
			row(f.Name, fmt.Sprintf("%s, %s of them free", plaintext.FormatBytes(f.Bytes), plaintext.FormatBytes(f.FreeBytes)))
		}
	})
	_, err := p.WriteTo(w)
	return err
}

// frontierStats adds up all origins.
func (k *stoppedCrawl) frontierStats(ctx context.Context) (*frontierStats, error) {
	s, err := k.countFrontier(ctx)
	if err == nil {
		s.StoreFiles, err = k.readStoreFileStats()
	}
	return s, err
}

// countFrontier adds up what the store holds, one host after the other.
func (k *stoppedCrawl) countFrontier(ctx context.Context) (*frontierStats, error) {
	s := &frontierStats{At: k.Time.UTC(), HostsByState: map[string]int{}}
	if err := k.ForEachHostReport(ctx, false, s.addHost); err != nil {
		return nil, err
	}
	if s.HostsByState[HostDue] > 0 {
		s.NextDueAt = time.Time{} // it is now
	}
	return s, nil
}

// addHost adds a host that is complete.
func (s *frontierStats) addHost(h *HostReport) {
	s.HostCount++
	s.OriginCount += len(h.Origins)
	s.SeenURLs += h.KnownURLs
	s.ParkedURLs += h.ParkedURLs
	s.AwaitingRevisit += h.AwaitingRevisit
	s.QueuedURLs += h.QueuedURLs
	s.HostsByState[h.State]++
	switch {
	case h.State == HostSuspended:
		s.SuspendedURLs += h.QueuedURLs
	case h.DueAt.IsZero():
	case h.State == HostDue:
		s.DueSince = earlierTime(s.DueSince, h.DueAt)
	default:
		s.NextDueAt = earlierTime(s.NextDueAt, h.DueAt)
	}
}

// readStoreFileStats tells how large the files of the crawl are.
func (k *stoppedCrawl) readStoreFileStats() (files []storeFileStats, err error) {
	for _, f := range []struct {
		name  string
		store datadir.StoreInspectorImporter
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
		files = append(files, storeFileStats{f.name, stats.Size, stats.FreeBytes})
	}
	return files, nil
}

// earlierTime returns the earlier of both, b if a is zero.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
