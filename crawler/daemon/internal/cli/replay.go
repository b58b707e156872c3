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

const replayHelp = `Run a recorded crawl, which has a ledger and WARC files, through the crawler again,
and list the decisions that differ. DIR is the crawl's data directory.

The replay uses the ledger's clock. It sends no requests and changes no files: for each
request in the ledger, the crawler decides what it would request from that host at that
moment, and gets the archived answer. The replay compares the order of the requests to
each host, where each URL was found, the verdict of robots.txt and the line that decided
it, and whether the host was due. It compares refusals if the ledger has them.

A difference need not be a fault. The ledger does not show everything that may have
decided: a page found on one host during a request to another, a name that did not
resolve, the limits of an address. If a site did not permit the use of a page for the
crawl's purpose, the archive has only the header of the page, and the replay takes its
links from the ledger. The command replays the first run of a crawl, and holds its
frontier in memory: about 1 KiB a URL.

Exit codes: 0 all decisions are the same, 1 failed, 2 wrong usage, 3 a decision
differs, 4 interrupted.`

// newReplayCommand returns the command decorum replay.
func (a *program) newReplayCommand() *cobra.Command {
	var warcDir string
	var limit int
	c := &cobra.Command{
		Use: "replay DIR", Short: "Check a recorded crawl by repeating its decisions", Long: replayHelp,
		Example: "  decorum replay decorum-data\n  decorum replay --warc archive decorum-data",
		Args:    command.ArgsOrUsageError(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return usage.Errorf("--limit: %d is not a number of differences", limit)
			}
			return a.replayCrawl(c.Context(), datadir.StateDir(args[0]), warcDir, limit)
		},
	}
	c.Flags().StringVar(&warcDir, "warc", "",
		"read the WARC files in the directory `DIR` (default: the project's output.warc)")
	c.Flags().IntVar(&limit, "limit", 20, "print at most `N` differences; 0: all")
	return c
}

// replayCrawl replays the crawl in dir and prints at most limit differences (0: all) and a summary.
// warcDir is the directory of the WARC files; empty: the one in the project.
func (a *program) replayCrawl(ctx context.Context, dir datadir.StateDir, warcDir string, limit int) error {
	p, seedPerOrigin, err := a.loadProjectForReplay(dir)
	if err != nil {
		return err
	}
	if warcDir = cmp.Or(warcDir, p.Output.WARCDir); warcDir == "" {
		return usage.Errorf("the crawl in %s wrote no WARC files, from which a replay reads the answers", dir)
	}
	// The replayer reads requests from the ledger, and their answers from the archive.
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

// loadProjectForReplay returns the project of the crawl in dir and the first seed of each origin.
// It returns a usage error if the crawl revisits pages.
func (a *program) loadProjectForReplay(dir datadir.StateDir) (project.Project, []decorum.URL, error) {
	if err := dir.RequireCrawl(); err != nil {
		return project.Project{}, nil, err
	}
	d, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return project.Project{}, nil, err
	}
	if mode, err := frontier.ParseRevisitMode(d.Revisit.Mode); err != nil || mode != frontier.NoRevisit {
		return project.Project{}, nil, usage.Errorf("cannot replay a crawl that revisits pages: its project has "+
			"revisit.mode %s", d.Revisit.Mode)
	}
	if f := engine.CheckHandler(a.Handlers, d.Handler); f != nil {
		return project.Project{}, nil, d.FieldError(*f)
	}
	seedPerOrigin, err := d.FirstSeedPerOrigin(os.Open)
	return d.Project, seedPerOrigin, err
}

// replayRecordedCrawl builds an engine whose store, transport and clock are the replayer's, and
// replays the crawl with it.
func (a *program) replayRecordedCrawl(ctx context.Context, replayer *replay.LedgerReplayer, p project.Project,
	seedPerOrigin []decorum.URL) (replay.Report, error) {
	p.Agent.Signature = project.Signing{} // the replay sends no requests, and the key file may be gone
	g := engine.Config{
		Stores:  datadir.CrawlStores{Frontier: replayer.Store(), Robots: memory.New(memory.Config{})},
		Outputs: sinks.Outputs{JSONL: sinks.NewJSONLRecorder(io.Discard)}, Handlers: a.Handlers, Log: a.Log,
		SharedResources: engine.SharedResources{SharedHosts: politeness.NewSharedHosts()},
		Transport:       replayer, Now: replayer.Now,
	}
	r, err := g.NewEngine(p, seedPerOrigin)
	if err != nil {
		return replay.Report{}, err
	}
	return replayer.Replay(ctx, r.Crawler, r.QueueSeeds)
}

// printReplayReport prints the summary of a replay. It returns ExitCheckFailed if decisions differ.
func (a *program) printReplayReport(r replay.Report, limit int) error {
	var s reporttext.Builder
	more := r.DifferenceCount - int64(limit)
	s.WriteLineIf(limit > 0 && more > 0, "… and %d more differences: --limit 0 prints all", more)
	s.WriteLine("requests: %d, refusals: %d, verdicts derived again: %d, differences: %d",
		r.Requests, r.Refusals, r.MatchingVerdicts, r.DifferenceCount)
	s.WriteLineIf(r.HeaderOnlyPages > 0,
		"pages whose use was not permitted, and whose content is not archived: %d; their links come from the ledger",
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
