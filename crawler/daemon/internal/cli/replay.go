package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/crawler/replay"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/memory"
)

const replayHelp = `Take a crawl that was recorded, in a ledger and WARC files, through the crawler
again, and say where it would decide otherwise. DIR is its data directory.

The clock is the ledger's, and nothing is sent or changed: when the ledger shows a
request, the crawler is asked what it would ask of that host at that moment, and gets
the answer that was archived. Compared are the order of each host, where each URL was
found, the verdict of robots.txt and the line that it rests on, and that the host was
due; and, if the ledger has refusals, these.

A difference need not be a fault. What the ledger does not show may have decided: a
page found on one host while another was being asked, a name that did not resolve, the
limits of an address. Of a page whose content was not to be used for the purpose of
the crawl the header alone is archived: it leads to what the ledger says that it led
to. The first run of a crawl is replayed, and its frontier is held
in memory: about 1 KiB a URL.

Exit codes: 0 every decision was made again, 1 failed, 2 wrong usage, 3 something is
different, 4 interrupted.`

func (a *program) newReplayCommand() *cobra.Command {
	var warcDir string
	var limit int
	c := &cobra.Command{
		Use: "replay DIR", Short: "Make the decisions of a recorded crawl again", Long: replayHelp,
		Example: "  decorum replay decorum-data\n  decorum replay --warc archive decorum-data", Args: command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return usage.Errorf("--limit: %d is not a number of differences", limit)
			}
			return a.replayCrawl(c.Context(), datadir.StateDir(args[0]), warcDir, limit)
		},
	}
	c.Flags().StringVar(&warcDir, "warc", "", "`DIR` of the WARC files, if they were moved")
	c.Flags().IntVar(&limit, "limit", 20, "tell `N` differences at most; 0: all")
	return c
}

// replayCrawl replays the crawl in a directory, and tells what is different.
func (a *program) replayCrawl(ctx context.Context, dir datadir.StateDir, warcDir string, limit int) error {
	p, seedPerOrigin, err := a.loadProjectForReplay(dir)
	if err != nil {
		return err
	}
	if warcDir = cmp.Or(warcDir, p.Output.WARCDir); warcDir == "" {
		return usage.Errorf("the crawl in %s kept no WARC files: a replay needs the answers", dir)
	}
	archive, err := replay.OpenArchive(warcDir)
	if err != nil {
		return err
	}
	replayer, err := replay.New(ledger.Records(dir.Path(datadir.LedgerDir)), archive)
	if err != nil {
		return err
	}
	replayer.CurrentRunSettings = engine.NewLedgerRunStart(&p)
	differences := 0
	replayer.OnDifference = func(d replay.Difference) {
		if differences++; limit == 0 || differences <= limit {
			fmt.Fprintln(a.Stdout, plaintext.ReplaceControlChars(d.String()))
		}
	}
	ctx, stop := a.WithSignalCancel(ctx)
	defer stop()
	report, err := a.replayRecordedCrawl(ctx, replayer, p, seedPerOrigin)
	if errors.Is(context.Cause(ctx), engine.ErrInterrupted) {
		return &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	}
	if err != nil {
		return fmt.Errorf("cannot replay the crawl in %s: %w", dir, err)
	}
	return a.printReplayReport(report, limit)
}

// loadProjectForReplay returns the project of the crawl in a directory, and its roots.
func (a *program) loadProjectForReplay(dir datadir.StateDir) (project.Project, []decorum.URL, error) {
	if err := dir.RequireCrawl(); err != nil {
		return project.Project{}, nil, err
	}
	d, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return project.Project{}, nil, err
	}
	if mode, err := frontier.ParseRevisitMode(d.Revisit.Mode); err != nil || mode != frontier.NoRevisit {
		return project.Project{}, nil, usage.Errorf("a crawl that visits its pages again cannot be replayed: its project says revisit.mode %s", d.Revisit.Mode)
	}
	if f := engine.CheckHandler(a.Handlers, d.Handler); f != nil {
		return project.Project{}, nil, d.FieldError(*f)
	}
	seedPerOrigin, err := d.FirstSeedPerOrigin(os.Open)
	return d.Project, seedPerOrigin, err
}

// replayRecordedCrawl puts a crawl together on the player, and plays it.
func (a *program) replayRecordedCrawl(ctx context.Context, replayer *replay.LedgerReplayer, p project.Project, seedPerOrigin []decorum.URL) (replay.Report, error) {
	p.Agent.Signature = project.Signing{} // nothing is sent, and the key may be elsewhere
	g := engine.Config{
		Stores:  datadir.CrawlStores{Frontier: replayer.Store(), Robots: memory.New(memory.Config{})},
		Outputs: sinks.Outputs{JSONL: sinks.NewJSONLRecorder(io.Discard)}, Handlers: a.Handlers, Log: a.Log,
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts()}, Transport: replayer, Now: replayer.Now,
	}
	r, err := g.NewEngine(p, seedPerOrigin)
	if err != nil {
		return replay.Report{}, err
	}
	return replayer.Replay(ctx, r.Crawler, r.QueueSeeds)
}

// printReplayReport tells what came of a replay.
func (a *program) printReplayReport(r replay.Report, limit int) error {
	var s reporttext.Builder
	more := r.DifferenceCount - int64(limit)
	s.WriteLineIf(limit > 0 && more > 0, "… and %d differences more: --limit 0 tells them all", more)
	s.WriteLine("requests: %d, refusals: %d, verdicts derived again: %d, differences: %d",
		r.Requests, r.Refusals, r.MatchingVerdicts, r.DifferenceCount)
	s.WriteLineIf(r.HeaderOnlyPages > 0,
		"pages whose content was not to be used, and is not archived: %d; they led to what the ledger says",
		r.HeaderOnlyPages)
	s.WriteLineIf(r.Unanswered > 0, "requests without an answer, not replayed: %d", r.Unanswered)
	s.WriteLineIf(r.LaterRunRecords > 0, "records of later runs, not replayed: %d", r.LaterRunRecords)
	if _, err := s.WriteTo(a.Stdout); err != nil {
		return err
	}
	if r.DifferenceCount > 0 {
		return &command.ExitError{Code: command.ExitCheckFailed}
	}
	return nil
}
