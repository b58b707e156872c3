package cli

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
)

// The demo begins with two lines about itself. The numbers at its end add up: what the crawl counts is what
// the servers saw, retries, failures, sitemaps and robots.txt files included.
func TestDemo(t *testing.T) {
	site := daemontest.ShopSite()
	site.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{
		Response:     crawltest.Text("User-agent: *\nDisallow: /till\nSitemap: http://shop.example/map.txt\n"),
		IsDisallowed: func(path string) bool { return strings.HasPrefix(path, "/till") }})
	site.Pages["/map.txt"] = crawltest.StaticPage(crawltest.Text("http://shop.example/busy\n"))
	var visits atomic.Int64
	site.Pages["/busy"] = func(crawltest.PageRequest) crawltest.Response {
		switch visits.Add(1) {
		case 1:
			return crawltest.Response{Status: http.StatusServiceUnavailable}
		case 2:
			return crawltest.Response{Fault: crawltest.Reset}
		}
		return crawltest.HTML("<p>busy")
	}
	web := crawltest.New(site)
	web.CrawlSettings.Seeds = []string{"http://shop.example/"}
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(&stdout),
		Stderr: terminal.NewStatusLineWriter(&stderr)}}
	a.Log = slog.New(slog.DiscardHandler)
	err = a.crawlDemo(t.Context(), web, server, "none")
	r := commandResult{command.ExitCode(err), stdout.String(), stderr.String()}
	r.want(t, command.ExitDone, "The demo serves 1 small sites on "+server.Addr,
		"9 for pages and sitemaps (7 different, 2 retries), 1 for robots.txt;",
		"The crawl counted the same: 7 pages + 0 failed visits + 1 sitemaps + "+
			"1 repeated on a new connection + 1 robots.txt = 10 requests\n")
	if lines := strings.SplitN(r.stderr, "\n", 3); !strings.HasPrefix(lines[0], "The demo ") ||
		!strings.HasPrefix(lines[1], "Some sites ") || strings.Contains(r.stderr, "→") {
		t.Errorf("the demo begins with %q", lines)
	}
}
