package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// slowShopSite returns the shop with one more page: asked is closed when the page is requested, and
// the page is answered when release is closed.
func slowShopSite(asked chan<- struct{}, release <-chan struct{}) crawltest.Site {
	site := daemontest.ShopSite()
	tellAsked := sync.OnceFunc(func() { close(asked) })
	site.Pages["/slow"] = func(crawltest.PageRequest) crawltest.Response {
		tellAsked()
		<-release
		return crawltest.HTML("at last")
	}
	return site
}

// Commands that inspect a crawl, or add URLs to it, call the process that runs it, and print the same
// when it has ended.
func TestCommandsAskRunningCrawl(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	defer end()
	v := daemontest.NewWebFixture(t, slowShopSite(asked, release))
	file := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\noutput: {ledger: true}\nscope: "+
		"{max_depth: 1}\nlimits: {workers: 1}\n")
	var crawl commandResult
	var crawling sync.WaitGroup
	defer crawling.Wait()
	defer end()
	crawling.Go(func() {
		crawl = runCommand(t, v.CrawlArgs("-c", file, "http://shop.example/", "http://shop.example/slow")...)
	})
	ask := func(args ...string) commandResult {
		t.Helper()
		return runCommand(t, append(args, "--data", v.DataDir())...)
	}
	<-asked
	ask("report").want(t, command.ExitDone, "The crawl in "+v.DataDir(), "shop.example")
	ask("report", "--host=shop.example").want(t, command.ExitDone, "origins", "http://shop.example")
	ask("report", "--host=none.example").want(t, command.ExitFailed, "knows no host none.example")
	ask("explain", "http://shop.example/till").want(t, command.ExitDone, "/till")
	ask("explain", "--fetch", "http://shop.example/").want(t, command.ExitUsage, "--fetch: the crawl is running")
	ask("frontier", "stats").want(t, command.ExitDone, "frontier.db", "robots.db")
	ask("frontier", "list", "--state=queued").want(t, command.ExitDone, "http://shop.example/slow")
	ask("frontier", "add", "http://shop.example/added", "http://elsewhere.example/").want(t, command.ExitDone,
		"1 new, 0 known already, 1 refused")
	ask("ledger", "show", "--url=http://shop.example/").want(t, command.ExitDone, "GET http://shop.example/  200")
	ask("ledger", "show", "--url=http://none.example/").want(t, command.ExitCheckFailed,
		"the ledger has no record of http://none.example/")
	ask("frontier", "compact").want(t, command.ExitFailed, "stop it first")
	if text := ask("report", "--format=jsonl").stdout; !strings.HasPrefix(text, `{"type":"totals",`) ||
		strings.Count(text, `{"type":"host",`) != 1 {
		t.Errorf("the report is %s", text)
	}
	r := decodeJSON[api.CrawlReport](t, ask("report", "--format=json").stdout)
	if len(r.Hosts) != 1 || r.HostCount != 1 {
		t.Errorf("the report is %+v", r)
	}
	end()
	crawling.Wait()
	crawl.want(t, command.ExitDone)
	if !slices.Contains(daemontest.RequestedPages(v.Web.Log()), "http://shop.example/added") {
		t.Error("the URL that was added was not visited")
	}
	if _, err := os.Lstat(filepath.Join(v.DataDir(), datadir.SocketFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	ask("report").want(t, command.ExitDone, "shop.example")
	ask("ledger", "show", "--url=http://shop.example/").want(t, command.ExitDone, "GET http://shop.example/  200")
}

// Commands that inspect a project of a daemon call the daemon: with --data for its directory or the
// project's, or through its address with the read-only token. When the daemon has ended, they open the
// project's files.
func TestCommandsAskDaemon(t *testing.T) {
	t.Parallel()
	f := newCommandFixture(t, daemontest.ShopSite())
	for _, name := range []string{"shop", "other"} {
		f.PutProjectFile(name, f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML, "output: {ledger: true}"))
	}
	s := f.startAPI()
	f.serveSocket()
	f.WaitForState("shop", api.StateDone)
	f.WaitForState("other", api.StateDone)
	dir := string(f.Supervisor.DataDir)
	projectDir := filepath.Join(dir, datadir.ProjectsDir, "shop")
	for what, where := range map[string][]string{
		"the daemon's directory":  {"--data", dir, "--project=shop"},
		"the project's directory": {"--data", projectDir},
		"an address and a token":  {"--server", s.server.URL, "--token-file", s.writeToken(), "--project=shop"},
	} {
		t.Log(what)
		for _, q := range []struct {
			args []string
			says string
		}{
			{[]string{"report"}, "shop.example"},
			{[]string{"report", "--format=json"}, `"host": "shop.example"`},
			{[]string{"explain", "http://shop.example/till"}, "disallow: /till"},
			{[]string{"frontier", "stats"}, "seen"},
			{[]string{"frontier", "list", "--state=parked"}, "http://shop.example/till"},
			{[]string{"frontier", "add", "http://shop.example/a"}, "0 new, 1 known already"},
			{[]string{"ledger", "show", "--host=shop.example"}, "GET http://shop.example/a  200"},
		} {
			runCommand(t, slices.Concat(q.args, where)...).want(t, command.ExitDone, q.says)
		}
		runCommand(t, slices.Concat([]string{"report", "--host=none.example"}, where)...).want(t, command.ExitFailed,
			"shop knows no host none.example")
	}
	for _, where := range [][]string{{"--data", dir}, {"--server", s.server.URL, "--token-file", s.writeToken()}} {
		runCommand(t, append([]string{"report"}, where...)...).want(t, command.ExitUsage,
			"the daemon has 2 projects: choose one with --project: other, shop")
		runCommand(t, append([]string{"report", "--project=none"}, where...)...).want(t, command.ExitUsage,
			`the daemon has no project "none": it has other, shop`)
	}
	f.Stop()
	runCommand(t, "report", "--data", dir).want(t, command.ExitUsage, "choose one with --project: other, shop")
	runCommand(t, "report", "--data", dir, "--project=none").want(t, command.ExitUsage,
		`the daemon has no project "none": it has other, shop`)
	for _, where := range [][]string{{"--data", dir, "--project=shop"}, {"--data", projectDir}} {
		runCommand(t, append([]string{"report"}, where...)...).want(t, command.ExitDone, "shop.example")
		runCommand(t, append([]string{"ledger", "show", "--host=shop.example"}, where...)...).want(t, command.ExitDone,
			"GET http://shop.example/a  200")
	}
	runCommand(t, "report", "--data", t.TempDir(), "--project=shop").want(t, command.ExitUsage,
		"is not the data directory of a daemon")
}
