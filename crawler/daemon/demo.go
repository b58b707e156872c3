package daemon

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
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
)

const demoHelp = `Start a small web on loopback, with most of what makes crawling hard, and crawl
it. Then print what the servers saw: the requests of each host, the shortest gap
between two, and every rule of politeness that was broken. Nothing leaves this
machine.

With --serve the web is served until Ctrl-C, for you to crawl; then the same report
is printed.

Exit codes: 0 no rule was broken, 1 failed, 3 a rule was broken, 4 interrupted.`

// demoDelay is the rest of a host in the demo: short, so that nobody waits.
const demoDelay = 200 * time.Millisecond

// demoTime bounds the demo on a slow machine; it ends by itself in half of it.
const demoTime = time.Minute

const demoContact = "https://" + decorum.Module

func (a *app) demoCommand() *cobra.Command {
	var serve, progress string
	c := &cobra.Command{
		Use: "demo", Short: "Crawl a sample web on loopback, and see what its servers saw",
		Long: demoHelp, Example: "  decorum demo\n  decorum demo --serve 127.0.0.1:8080", Args: args(cobra.NoArgs),
	}
	c.Flags().StringVar(&serve, "serve", "", "only serve the sample web on `ADDR`")
	c.Flags().StringVar(&progress, "progress", "auto", progressUsage)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkProgress(progress); err != nil {
			return err
		}
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

// serveDemo serves the web until somebody interrupts it.
func (a *app) serveDemo(web *crawltest.Web, server *crawltest.Server) error {
	fmt.Fprintf(a.screen, "serving the sample web on %s until Ctrl-C; to crawl it:\n  decorum crawl --contact %s --allow-private --connect-to ::%s %s\n",
		server.Addr, demoContact, server.Addr, strings.Join(web.CrawlPlan.Seeds, " "))
	<-a.signals
	if err := server.Close(); err != nil {
		return err
	}
	return a.printReport(web.Judge(crawltest.JudgeOptions{}))
}

// crawlDemo crawls the web, and prints what it saw.
func (a *app) crawlDemo(ctx context.Context, web *crawltest.Web, server *crawltest.Server, progress string) error {
	dir, err := os.MkdirTemp("", "decorum-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	end := a.start(ctx, demoProject(web.CrawlPlan, server.Addr, dir), start{progress: progress, brisk: true})
	if err := server.Close(); err != nil {
		return err
	}
	if end != nil && !errors.Is(end, errTime) && !errors.Is(end, errSignal) {
		return end
	}
	report := a.printReport(web.Judge(crawltest.JudgeOptions{MinDelay: demoDelay, RequiredProductToken: "decorum"}))
	if errors.Is(end, errSignal) {
		return &exit{ExitStopped, errSignal}
	}
	return report
}

// demoProject returns the project that crawls the sample web at addr.
func demoProject(plan crawltest.CrawlPlan, addr, dir string) Project {
	p := DefaultProject()
	p.Agent.Contact, p.Seeds, p.Store.Path = demoContact, plan.Seeds, dir
	p.Politeness.Delay, p.Limits.Duration = Duration(demoDelay), Duration(demoTime)
	p.Fetch.ConnectTo, p.Fetch.AllowPrivate = []string{"::" + addr}, true
	if plan.MaxDepth > 0 {
		p.Scope.MaxDepth = plan.MaxDepth
	}
	if plan.Timeout > 0 {
		p.Fetch.Timeout = Duration(plan.Timeout)
	}
	return p
}

// hurryGate makes robots.txt files that cannot be had be asked for again within
// seconds, and hurryPolicy pages. They are for servers that only play at being in
// trouble.
func hurryGate(gate *robots.GateConfig) {
	gate.Retry503 = robots.Backoff{First: time.Second, Max: 2 * time.Second}
	gate.Retry = gate.Retry503
}

func hurryPolicy(policy *politeness.Policy) {
	policy.Backoff, policy.MaxBackoff = 500*time.Millisecond, 2*time.Second
}

// printReport prints what the servers saw.
func (a *app) printReport(r crawltest.JudgeReport) error {
	if _, err := fmt.Fprintf(a.stdout, "What the servers saw:\n\n%s", r); err != nil {
		return err
	}
	if !r.OK() {
		return &exit{code: ExitNo}
	}
	return nil
}
