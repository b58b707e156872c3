package daemon

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/storage/bolt"
)

const frontierHelp = `Look into the frontier of a crawl, its queues and what it has seen, add to it, and
move it to another store.
The crawl must not be running: stop it first, --resume goes on. Nothing is sent.`

func (a *app) frontierCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "frontier", Short: "Look into a crawl's queues, add to them, move them", Long: frontierHelp,
		Args: noCommand, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.frontierStatsCommand(), a.frontierListCommand(), a.frontierAddCommand(), a.frontierExportCommand(),
		a.frontierImportCommand(), a.frontierCompactCommand())
	return c
}

const frontierStatsHelp = `Say how much the frontier holds, and when its next URL is due.

  queued   to be visited; put off ones included
  resting  visited, and to be visited again
  parked   closed by robots.txt or out of scope, until that changes
  seen     all that were ever queued

The states of hosts are those of decorum report.`

func (a *app) frontierStatsCommand() *cobra.Command {
	var data, format string
	c := &cobra.Command{
		Use: "stats", Short: "Say how much a crawl's frontier holds", Long: frontierStatsHelp,
		Example: "  decorum frontier stats\n  decorum frontier stats --format json | jq .queued", Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.frontierStats(c.Context(), data, format) },
	}
	dataFlag(c.Flags(), &data)
	c.Flags().StringVar(&format, "format", "table", "write `FORMAT`: table or json")
	return c
}

// frontierStats are the numbers of a frontier.
type frontierStats struct {
	At       time.Time      `json:"at"`
	Hosts    int            `json:"host_count"`
	Origins  int            `json:"origin_count"`
	States   map[string]int `json:"states"` // hosts in each
	Queued   int            `json:"queued"`
	Resting  int            `json:"resting"`
	Parked   int            `json:"parked"`
	Seen     int            `json:"seen"`
	SetAside int            `json:"set_aside"`          // of Queued: of hosts that are set aside
	NextDue  time.Time      `json:"next_due,omitzero"`  // when the next URL can be visited, if none can now
	DueSince time.Time      `json:"due_since,omitzero"` // since when the host waits that is due longest
	Files    []stateFile    `json:"files"`
}

type stateFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Free  int64  `json:"free_bytes"` // of them, which compact gives back, about
}

func (a *app) frontierStats(ctx context.Context, data, format string) error {
	if err := checkFormat(format, "table", "json"); err != nil {
		return err
	}
	return a.look(ctx, data, func(ctx context.Context, k *offlineCrawl) error {
		s, err := k.stats(ctx)
		if err != nil {
			return err
		}
		if format == "json" {
			return writeJSON(a.stdout, s)
		}
		return s.write(a.stdout)
	})
}

// write writes the numbers for people.
func (s *frontierStats) write(w io.Writer) error {
	var p sheet
	p.table(func(row func(...any)) {
		row("hosts", fmt.Sprintf("%d (%s), origins: %d", s.Hosts, statesText(s.States), s.Origins))
		row("queued", fmt.Sprintf("%d, of them set aside: %d", s.Queued, s.SetAside))
		row("resting", s.Resting)
		row("parked", s.Parked)
		row("seen", s.Seen)
		if !s.NextDue.IsZero() {
			row("next due", clock(s.NextDue))
		}
		if !s.DueSince.IsZero() {
			row("due since", clock(s.DueSince))
		}
		for _, f := range s.Files {
			row(f.Name, fmt.Sprintf("%s, %s of them free", approximate(f.Bytes), approximate(f.Free)))
		}
	})
	_, err := p.WriteTo(w)
	return err
}

// stats adds up all origins.
func (k *offlineCrawl) stats(ctx context.Context) (*frontierStats, error) {
	s, err := k.count(ctx)
	if err == nil {
		s.Files, err = k.files()
	}
	return s, err
}

// count adds up what the store holds, one host after the other.
func (k *offlineCrawl) count(ctx context.Context) (*frontierStats, error) {
	s := &frontierStats{At: k.now.UTC(), States: map[string]int{}}
	if err := k.eachHost(ctx, false, s.add); err != nil {
		return nil, err
	}
	if s.States[stateDue] > 0 {
		s.NextDue = time.Time{} // it is now
	}
	return s, nil
}

// add adds a host that is complete.
func (s *frontierStats) add(h *surveyed) {
	s.Hosts++
	s.Origins += len(h.Origins)
	s.Seen += h.KnownURLs
	s.Parked += h.ParkedURLs
	s.Resting += h.AwaitingRevisit
	s.Queued += h.QueuedURLs
	s.States[h.State]++
	switch {
	case h.State == stateSetAside:
		s.SetAside += h.QueuedURLs
	case h.DueAt.IsZero():
	case h.State == stateDue:
		s.DueSince = earlier(s.DueSince, h.DueAt)
	default:
		s.NextDue = earlier(s.NextDue, h.DueAt)
	}
}

// files tells how large the files of the crawl are.
func (k *offlineCrawl) files() (files []stateFile, err error) {
	for _, f := range []struct {
		name  string
		store store
	}{{storeFile, k.store}, {robotsFile, k.robots}} {
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
		files = append(files, stateFile{f.name, stats.Size, stats.FreeBytes})
	}
	return files, nil
}

// earlier returns the earlier of both, b if a is zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
