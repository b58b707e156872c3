package main

import (
	"runtime/debug"

	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// A crawler visits every page of a web that is served at an address: in a process
// of ours, or as a program of somebody else.
type crawler struct {
	name           string
	skipsRobots    bool // it does not ask every host for its robots.txt
	refetchesPages bool // it asks for some pages more than once
	runCrawl       func(childProcessTask) error
	command        func(childProcessTask) (*exec.Cmd, error) // instead of crawl; errNotInstalled: it is not there
	versionOf      func(childProcessTask) string
}

// crawlers are what is compared. The first is what the others are measured by.
func crawlers() []crawler {
	return []crawler{
		{name: "colly", refetchesPages: true, runCrawl: crawlByColly, versionOf: moduleVersionFunc("github.com/gocolly/colly/v2")},
		{name: "decorum", runCrawl: func(p childProcessTask) error { return crawlByDecorum(p, "", true) }, versionOf: decorumRevision},
		{name: "decorum without ledger", runCrawl: func(p childProcessTask) error { return crawlByDecorum(p, "", false) }, versionOf: decorumRevision},
		{name: "decorum OnHTML", runCrawl: func(p childProcessTask) error { return crawlByDecorum(p, "visit", true) }, versionOf: decorumRevision},
		{name: "decorum OnHTML Follow", runCrawl: func(p childProcessTask) error { return crawlByDecorum(p, "follow", true) }, versionOf: decorumRevision},
		{name: "spider-rs", skipsRobots: true, refetchesPages: true, command: spiderRSCommand, versionOf: spiderRSVersion},
		{name: "wget2", command: wget2Command, versionOf: wget2Version},
		{name: "tokenizer loop", skipsRobots: true, runCrawl: crawlByTokenizer, versionOf: moduleVersionFunc("golang.org/x/net")},
		{name: "net/http", skipsRobots: true, runCrawl: crawlByNetHTTP, versionOf: func(childProcessTask) string { return runtime.Version() }},
	}
}

// selectCrawlers returns the crawlers of that names, all for none.
func selectCrawlers(only string) ([]crawler, error) {
	all := crawlers()
	if only == "" {
		return all, nil
	}
	var some []crawler
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(c crawler) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no crawler %q", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// transportTo is the default transport, but that all connections go to address.
func transportTo(address string) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	var d net.Dialer
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, address)
	}
	return t
}

// crawlByColly crawls as colly's documentation shows: asynchronously, with a limit of
// requests at a time, and every link visited.
func crawlByColly(p childProcessTask) error {
	c := colly.NewCollector(colly.Async(true))
	c.IgnoreRobotsTxt = false
	c.WithTransport(transportTo(p.Address))
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: p.Workers}); err != nil {
		return err
	}
	c.OnHTML("a[href]", visitLinkCallback)
	var failed atomic.Int64
	c.OnError(func(*colly.Response, error) { failed.Add(1) })
	if err := c.Visit(seedURL()); err != nil {
		return err
	}
	c.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d requests failed", n)
	}
	return nil
}

// visitLinkCallback is the callback of both, colly and decorum. That a page is known is an error.
func visitLinkCallback(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) }

// followLinkCallback is the same in decorum's words.
func followLinkCallback(e *colly.HTMLElement) { _ = collyfetch.FollowLink(e.Request, e.Attr("href")) }

// handlers are decorum's callbacks by name; without one it follows links itself.
var handlers = collyfetch.NamedCallbacks{
	"visit":  func(c *collyfetch.Collector) { c.OnHTML("a[href]", visitLinkCallback) },
	"follow": func(c *collyfetch.Collector) { c.OnHTML("a[href]", followLinkCallback) },
}

const projectTemplate = `project: bench
handler: %q
agent: {product: bench, version: "1", contact: "mailto:bench@example.com"}
seeds: [%q]
scope: {within: any}
politeness: {delay: 0s, adaptive: 0, concurrency: %d}
limits: {workers: %d}
fetch: {allow_private: true, connect_to: ["::%s"]}
store: {path: %q}
output: {ledger: %t}
`

// crawlByDecorum is the command decorum crawl, with all that it does beside: the state
// in files that survive a crash, a line of output for each page, and a ledger of
// what permitted each request, unless that is not wanted.
func crawlByDecorum(p childProcessTask, handler string, ledger bool) error {
	dir, err := os.MkdirTemp(p.Dir, "decorum-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "project.yaml")
	concurrency := max(1, p.Workers/p.Web.Hosts)
	text := fmt.Sprintf(projectTemplate, handler, seedURL(), concurrency, p.Workers, p.Address, filepath.Join(dir, "data"), ledger)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	daemon.TuneGC() // as Main does
	if code := daemon.Run(handlers, "crawl", "-c", file, "--progress", "none", "--log-level", "warn"); code != daemon.ExitDone {
		return fmt.Errorf("decorum crawl ends with %d", code)
	}
	return nil
}

// moduleVersionFunc is the version of a module that this program is built with.
func moduleVersionFunc(path string) func(childProcessTask) string {
	return func(childProcessTask) string {
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, m := range info.Deps {
				if m.Path == path {
					return m.Version
				}
			}
		}
		return ""
	}
}

// decorumRevision is the revision that this program is built from.
func decorumRevision(childProcessTask) string {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return cmp.Or(revision, "this one")
}
