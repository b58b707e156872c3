package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/project"
)

const demoHelp = `Start a small sample web on loopback that has most of what makes crawling hard, and
crawl it. Then print what its servers saw: the requests to each host, the shortest
gap between two of them, and every rule of politeness that the crawl broke. No
request leaves this machine.

With --serve, decorum only serves the sample web, for you to crawl. Ctrl-C ends it
and prints the same report.

Exit codes: 0 no rule was broken, 1 failed, 3 a rule was broken, 4 interrupted.`

// demoDelay is the delay between two requests to a host of the demo: short, so that the demo ends
// soon.
const demoDelay = 200 * time.Millisecond

// demoTimeout is the longest duration of the demo, for slow machines; usually the demo takes less
// than half of it.
const demoTimeout = time.Minute

// demoContact is the contact that the demo's requests carry.
const demoContact = "https://" + decorum.ModulePath

// newDemoCommand returns the command decorum demo.
func (a *program) newDemoCommand() *cobra.Command {
	var serve, progress string
	c := &cobra.Command{
		Use: "demo", Short: "Crawl a sample web on loopback, and print what its servers saw",
		Long: demoHelp, Example: "  decorum demo\n  decorum demo --serve 127.0.0.1:8080",
		Args: command.ArgsOrUsageError(cobra.NoArgs),
	}
	c.Flags().StringVar(&serve, "serve", "", "only serve the sample web on `ADDR`, a HOST:PORT (default: crawl it)")
	c.Flags().StringVar(&progress, "progress", "auto", progressFlagUsage)
	a.addQuietFlag(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkProgressFlag(progress); err != nil {
			return err
		}
		a.silenceProgressIfQuiet(c.Flags(), &progress)
		web := crawltest.DemoWeb()
		server, err := web.Start(serve)
		if err != nil {
			return fmt.Errorf("cannot serve the sample web: %w", err)
		}
		if serve != "" {
			return a.serveDemo(web, server)
		}
		return a.crawlDemo(c.Context(), web, server, progress)
	}
	return c
}

// serveDemo serves the sample web until a signal arrives, and prints what its servers saw.
func (a *program) serveDemo(web *crawltest.Web, server *crawltest.Server) error {
	fmt.Fprintf(a.Stderr, "serving the sample web on %s until Ctrl-C; to crawl it:\n  decorum crawl --contact %s "+
		"--allow-private --connect-to ::%s %s\n",
		server.Addr, demoContact, server.Addr, strings.Join(web.CrawlSettings.Seeds, " "))
	select {
	case <-a.Signals:
	case <-a.Hangups:
	}
	if err := server.Close(); err != nil {
		return err
	}
	return a.printDemoReport(web.Judge(crawltest.JudgeOptions{}))
}

// crawlDemo crawls the sample web with a temporary data directory, and prints what its servers
// saw. It prints the report after a crawl that demoTimeout or a signal ended, too.
func (a *program) crawlDemo(ctx context.Context, web *crawltest.Web, server *crawltest.Server, progress string) error {
	dir, err := os.MkdirTemp("", "decorum-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a.announceDemo(web, server)
	var counted demoRequests
	crawlErr := a.runProject(ctx, demoProject(web.CrawlSettings, server.Addr, dir),
		crawlOptions{progressMode: progress, fastRetries: true, temporary: true,
			atEnd: func(j *foregroundRun) { counted = j.demoRequests() }})
	if err := server.Close(); err != nil {
		return err
	}
	if crawlErr != nil && !errors.Is(crawlErr, engine.ErrTimeLimit) && !errors.Is(crawlErr, engine.ErrInterrupted) {
		return crawlErr
	}
	seen := web.Judge(crawltest.JudgeOptions{MinDelay: demoDelay, RequiredProductToken: "decorum"})
	report := a.printDemoReport(seen)
	if _, err := fmt.Fprintf(a.Stdout, "\n%s\n", counted.compareWith(seen.Requests)); err != nil {
		return err
	}
	if errors.Is(crawlErr, engine.ErrInterrupted) {
		return &command.ExitError{Code: command.ExitStopped, Err: engine.ErrInterrupted}
	}
	return report
}

// announceDemo says what the demo does, and why it logs warnings.
func (a *program) announceDemo(web *crawltest.Web, server *crawltest.Server) {
	if a.quiet {
		return
	}
	fmt.Fprintf(a.Stderr, "The demo serves %d small sites on %s and crawls them, for about 15 seconds. "+
		"Nothing leaves this machine.\n", len(web.CrawlSettings.Seeds), server.Addr)
	fmt.Fprintln(a.Stderr, "Some sites are overloaded or broken on purpose, so it logs warnings. "+
		"It ends with what the servers saw.")
}

// demoRequests are the requests that the crawl of the demo has counted itself.
type demoRequests struct{ pages, failed, repeated, sitemaps, tdmrep, robots int64 }

func (j *foregroundRun) demoRequests() demoRequests {
	st := j.Crawler.Stats()
	return demoRequests{pages: st.Pages, failed: j.output.LineCounts()[0], repeated: st.StaleConns,
		sitemaps: st.SitemapFetches, tdmrep: st.TDMRepFetches, robots: st.RobotsFetches}
}

// compareWith returns a line with the sum of r, which says whether the servers saw as many requests. They
// differ if the crawl was interrupted, or if a request did not reach a server.
func (r demoRequests) compareWith(seen int) string {
	sum := r.pages + r.failed + r.repeated + r.sitemaps + r.tdmrep + r.robots
	counts := fmt.Sprintf("%d pages + %d failed visits + %d sitemaps", r.pages, r.failed, r.sitemaps)
	if r.repeated > 0 {
		counts += fmt.Sprintf(" + %d repeated on a new connection", r.repeated)
	}
	if r.tdmrep > 0 {
		counts += fmt.Sprintf(" + %d tdmrep.json", r.tdmrep)
	}
	counts += fmt.Sprintf(" + %d robots.txt = %d requests", r.robots, sum)
	if sum == int64(seen) {
		return "The crawl counted the same: " + counts
	}
	return fmt.Sprintf("The crawl counted %s; the servers saw %d", counts, seen)
}

// demoProject returns the project that crawls the sample web at addr, with its state in dir.
func demoProject(plan crawltest.CrawlSettings, addr, dir string) project.Project {
	p := project.Default()
	p.Agent.Contact, p.Seeds, p.Store.Path = demoContact, plan.Seeds, dir
	p.Politeness.Delay, p.Limits.Duration = project.Duration(demoDelay), project.Duration(demoTimeout)
	p.Fetch.ConnectToRules, p.Fetch.AllowPrivate = []string{"::" + addr}, true
	if plan.MaxDepth > 0 {
		p.Scope.MaxDepth = plan.MaxDepth
	}
	if plan.RequestTimeout > 0 {
		p.Fetch.Timeout = project.Duration(plan.RequestTimeout)
	}
	return p
}

// printDemoReport prints what the servers saw. It returns ExitCheckFailed if a rule was broken.
func (a *program) printDemoReport(r crawltest.JudgeReport) error {
	if _, err := fmt.Fprintf(a.Stdout, "What the servers saw:\n\n%s", r); err != nil {
		return err
	}
	if !r.OK() {
		return &command.ExitError{Code: command.ExitCheckFailed}
	}
	return nil
}
