package main

import (
	"runtime/debug"

	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// A crawler visits every page of a web that a server process serves. It is a function of this
// program or an external program.
type crawler struct {
	name           string
	skipsRobots    bool                                      // it does not request the robots.txt of every host
	refetchesPages bool                                      // it requests some pages more than once
	mayFailWithTLS bool                                      // its row is left out if it fails with https
	pauses         bool                                      // it pauses at each host, if the web says so
	runCrawl       func(childProcessTask) error              // crawls, in a child process; nil if command is set
	command        func(childProcessTask) (*exec.Cmd, error) // returns the external program, or errNotInstalled
	versionOf      func(childProcessTask) string
}

// crawlers returns the crawlers to compare. The ratios in the table are relative to the first.
func crawlers() []crawler {
	decorum := func(name, handler string, ledger bool) crawler {
		return crawler{name: name, pauses: true, versionOf: decorumRevision,
			runCrawl: func(p childProcessTask) error { return crawlByDecorum(p, handler, ledger) }}
	}
	return []crawler{
		{name: "colly", refetchesPages: true, mayFailWithTLS: true, runCrawl: crawlByColly,
			versionOf: moduleVersionFunc("github.com/gocolly/colly/v2")},
		decorum("decorum", "", true),
		decorum("decorum without ledger", "", false),
		decorum("decorum OnHTML", "visit", true),
		decorum("decorum OnHTML Follow", "follow", true),
		{name: "spider-rs", skipsRobots: true, refetchesPages: true, mayFailWithTLS: true, command: spiderRSCommand,
			versionOf: spiderRSVersion},
		{name: "wget2", mayFailWithTLS: true, command: wget2Command, versionOf: wget2Version},
		{name: "tokenizer loop", skipsRobots: true, runCrawl: crawlByTokenizer,
			versionOf: moduleVersionFunc("golang.org/x/net")},
		{name: "net/http", skipsRobots: true, runCrawl: crawlByNetHTTP, versionOf: func(childProcessTask) string {
			return runtime.Version()
		}},
	}
}

// selectCrawlers returns the crawlers with the names in only, which commas separate, or all for "".
func selectCrawlers(only string) ([]crawler, error) {
	all := crawlers()
	if only == "" {
		return all, nil
	}
	var some []crawler
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(c crawler) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown crawler %q", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// transport returns a copy of the default transport that connects to the server for every host, and
// trusts its certificates.
func (p childProcessTask) transport() (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	address := p.Address.Proxy
	if p.Web.TLS != nil {
		address = p.Address.TLS
		text, err := os.ReadFile(p.Address.CAFile)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		t.TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
	}
	var d net.Dialer
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, address)
	}
	return t, nil
}

// crawlByColly crawls with colly, used as in its documentation: asynchronously, with a limit of
// simultaneous requests, and with Visit for every link.
func crawlByColly(p childProcessTask) error {
	c := colly.NewCollector(colly.Async(true))
	c.IgnoreRobotsTxt = false
	transport, err := p.transport()
	if err != nil {
		return err
	}
	c.WithTransport(transport)
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: p.Workers}); err != nil {
		return err
	}
	c.OnHTML("a[href]", visitLinkCallback)
	var failed atomic.Pointer[error]
	c.OnError(func(_ *colly.Response, err error) { failed.CompareAndSwap(nil, &err) })
	if err := c.Visit(p.Web.seedURL()); err != nil {
		return err
	}
	c.Wait()
	if err := failed.Load(); err != nil {
		return fmt.Errorf("a request failed: %w", *err)
	}
	return nil
}

// visitLinkCallback follows a link, in colly and in decorum. It ignores the error for a known page.
func visitLinkCallback(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) }

// followLinkCallback follows a link with decorum's own function.
func followLinkCallback(e *colly.HTMLElement) { _ = collyfetch.FollowLink(e.Request, e.Attr("href")) }

// handlers are the callbacks for decorum by name. Without a handler, decorum follows links itself.
var handlers = collyfetch.NamedCallbacks{
	"visit":  func(c *collyfetch.Collector) { c.OnHTML("a[href]", visitLinkCallback) },
	"follow": func(c *collyfetch.Collector) { c.OnHTML("a[href]", followLinkCallback) },
}

// projectTemplate is the project file of crawlByDecorum. The web stands for public pages, which decorum
// visits without post-quantum key exchange. The project must say so, because the addresses are private.
const projectTemplate = `project: bench
handler: %q
agent: {product: bench, version: "1", contact: "mailto:bench@example.com"}
seeds: [%q]
scope: {within: any}
discover: {sitemap_xml: false} # the web of the benchmark has no sitemap
politeness: {delay: %s, adaptive: 0, concurrency: %d}
limits: {workers: %d}
fetch: {allow_private: true, connect_to: ["::%s"], ca_file: %q, connections: {post_quantum: never}}
store: {path: %q}
output: {ledger: %t}
`

// crawlByDecorum runs the command decorum crawl, with everything that it does beside fetching: it
// keeps its state in files that survive a crash, writes a line of output for each page and, if
// ledger is set, records in a ledger what permitted each request.
func crawlByDecorum(p childProcessTask, handler string, ledger bool) error {
	dir, err := os.MkdirTemp(p.Dir, "decorum-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "project.yaml")
	concurrency := max(1, p.Workers/p.Web.Hosts)
	delay, address := time.Duration(0), p.Address.Proxy
	if p.Web.TLS != nil {
		delay, address = p.Web.TLS.Delay, p.Address.TLS
	}
	text := fmt.Sprintf(projectTemplate, handler, p.Web.seedURL(), delay, concurrency, p.Workers, address,
		p.Address.CAFile, filepath.Join(dir, "data"), ledger)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	daemon.LimitMemory() // as daemon.Main does
	if code := daemon.Run(handlers, "crawl", "-c", file, "--progress", "none", "--log-level",
		"warn"); code != daemon.ExitDone {
		return fmt.Errorf("decorum crawl ends with %d", code)
	}
	return nil
}

// moduleVersionFunc returns a function that returns the version of a module in this program's build.
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

// decorumRevision returns the revision from which this program is built, or "this one".
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
