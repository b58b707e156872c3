package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/replay"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
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

func (a *app) replayCommand() *cobra.Command {
	var archive string
	var limit int
	c := &cobra.Command{
		Use: "replay DIR", Short: "Make the decisions of a recorded crawl again", Long: replayHelp,
		Example: "  decorum replay decorum-data\n  decorum replay --warc archive decorum-data", Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return usage("--limit: %d is not a number of differences", limit)
			}
			return a.replay(c.Context(), stateDir(args[0]), archive, limit)
		},
	}
	c.Flags().StringVar(&archive, "warc", "", "`DIR` of the WARC files, if they were moved")
	c.Flags().IntVar(&limit, "limit", 20, "tell `N` differences at most; 0: all")
	return c
}

// replay replays the crawl in a directory, and tells what is different.
func (a *app) replay(ctx context.Context, dir stateDir, archive string, limit int) error {
	p, roots, err := a.recorded(dir)
	if err != nil {
		return err
	}
	if archive == "" {
		archive = p.Output.WARC
	}
	if archive == "" {
		return usage("the crawl in %s kept no WARC files: a replay needs the answers", dir)
	}
	answers, err := replay.OpenAnswers(archive)
	if err != nil {
		return err
	}
	player, err := replay.New(ledger.Records(dir.path(ledgerDir)), answers)
	if err != nil {
		return err
	}
	player.Run = p.ledgerRun()
	differences := 0
	player.Differ = func(d replay.Difference) {
		if differences++; limit == 0 || differences <= limit {
			fmt.Fprintln(a.stdout, plain(d.String()))
		}
	}
	ctx, stop := a.untilSignal(ctx)
	defer stop()
	report, err := a.play(ctx, player, p, roots)
	if errors.Is(context.Cause(ctx), errSignal) {
		return &exit{ExitStopped, errSignal}
	}
	if err != nil {
		return fmt.Errorf("cannot replay the crawl in %s: %w", dir, err)
	}
	return a.tellReplay(report, limit)
}

// recorded returns the project of the crawl in a directory, and its roots.
func (a *app) recorded(dir stateDir) (Project, []decorum.URL, error) {
	if err := dir.mustHoldCrawl(); err != nil {
		return Project{}, nil, err
	}
	d, err := readDraft(dir.path(projectFile))
	if err != nil {
		return Project{}, nil, err
	}
	if mode, err := frontier.ParseRevisitMode(d.Revisit.Mode); err != nil || mode != frontier.NoRevisit {
		return Project{}, nil, usage("a crawl that visits its pages again cannot be replayed: its project says revisit.mode %s", d.Revisit.Mode)
	}
	if f := a.handlers.unknown(d.Handler); f != nil {
		return Project{}, nil, d.blame(*f)
	}
	roots, err := d.roots(nil)
	return d.Project, roots, err
}

// play puts a crawl together on the player, and plays it.
func (a *app) play(ctx context.Context, player *replay.Player, p Project, roots []decorum.URL) (replay.Report, error) {
	p.Agent.Signature = Signing{} // nothing is sent, and the key may be elsewhere
	g := ground{
		files:   stores{frontier: player.Store, robots: storage.NewMemory(storage.Config{})},
		outputs: outputs{out: &output{w: io.Discard}}, handlers: a.handlers, log: a.log,
		shared: shared{hosts: politeness.NewHosts()}, transport: player, now: player.Now,
	}
	r, err := g.furnish(p, roots)
	if err != nil {
		return replay.Report{}, err
	}
	return player.Play(ctx, r.crawler, r.plant)
}

// tellReplay tells what came of a replay.
func (a *app) tellReplay(r replay.Report, limit int) error {
	if more := r.Differences - int64(limit); limit > 0 && more > 0 {
		fmt.Fprintf(a.stdout, "… and %d differences more: --limit 0 tells them all\n", more)
	}
	fmt.Fprintf(a.stdout, "requests: %d, refusals: %d, verdicts derived again: %d, differences: %d\n",
		r.Requests, r.Refusals, r.Verdicts, r.Differences)
	if r.Withheld > 0 {
		fmt.Fprintf(a.stdout, "pages whose content was not to be used, and is not archived: %d; they led to what the ledger says\n", r.Withheld)
	}
	if r.Interrupted > 0 {
		fmt.Fprintf(a.stdout, "requests without an answer, not replayed: %d\n", r.Interrupted)
	}
	if r.Later > 0 {
		fmt.Fprintf(a.stdout, "records of later runs, not replayed: %d\n", r.Later)
	}
	if r.Differences > 0 {
		return &exit{code: ExitNo}
	}
	return nil
}
