package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A project gives the same pages with each storage engine.
func TestCrawlOnRedis(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 3, 1)
	var got [2][]string
	for i, yaml := range []string{"project: shop\n", daemontest.RedisField(c, ", lease: 10s")} {
		web := daemontest.KillTestWeb(0, 15, nil)
		v := daemontest.NewWebFixture(t)
		v.Web, v.Server = web, daemontest.StartWeb(t, web)
		v.Addr = v.Server.Addr
		runCommand(t, v.CrawlArgs(append([]string{"-c", testfile.Write(t, "p.yaml", yaml), "--max-depth=100",
			"--delay=1ms"}, web.CrawlSettings.Seeds...)...)...).want(t, command.ExitDone)
		got[i] = daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)))
		if r := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "decorum"}); !r.OK() {
			t.Error(r)
		}
		if i == 0 {
			continue
		}
		p := project.Default()
		p.Store.Redis.Addresses = []string{"127.0.0.1:1"} // the lengths are in Redis, not in a file of bbolt
		if k, err := datadir.StateDir(v.DataDir()).ReadDurableOutputLengths(p); err != nil ||
			!k.Find(filepath.Join(v.DataDir(), datadir.OutputFile)).IsRecorded ||
			!k.Find(filepath.Join(v.DataDir(), datadir.LedgerDir)).IsRecorded {
			t.Errorf("lengths %+v (%v), want those of output and ledger beside", k, err)
		}
		runCommand(t, v.CrawlArgs("--resume")...).want(t, command.ExitDone)
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" || len(got[0]) == 0 {
		t.Errorf("%d pages on bolt; on bolt (-) and on Redis (+):\n%s", len(got[0]), diff)
	}
}

// A crawl in Redis can be resumed and inspected, and is never mixed with one in files.
func TestRedisAndDirectories(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := testfile.Write(t, "p.yaml", daemontest.RedisField(c, ", durability: none"))
	runCommand(t, v.CrawlArgs("-c", project, "--max-pages=2", "http://shop.example/")...).want(t, command.ExitDone,
		"the limit of pages is reached")
	runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/")...).want(t,
		command.ExitUsage, "already holds a crawl")
	runCommand(t, v.CrawlArgs("-c", project, "--fresh", "http://shop.example/")...).want(t, command.ExitUsage,
		"--fresh: the state is in Redis")
	runCommand(t, "frontier", "compact", "--data", v.DataDir()).want(t, command.ExitUsage, "is in Redis")
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-pages=0", "--progress=none").want(t,
		command.ExitDone, "pages: 3 (")
	if r := runCommand(t, "frontier", "stats", "--data", v.DataDir()); !strings.Contains(r.stdout, "seen") {
		t.Errorf("stats: %s", r.stdout)
	}
	if diff := cmp.Diff(daemontest.ShopURLs,
		daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)))); diff != "" {
		t.Error(diff)
	}
	other := &daemontest.WebFixture{Web: v.Web, Addr: v.Addr, Dir: t.TempDir()}
	runCommand(t, other.CrawlArgs("http://shop.example/")...).want(t, command.ExitDone)
	runCommand(t, other.CrawlArgs("-c", project, "--resume", "http://shop.example/")...).want(t, command.ExitUsage,
		"store.redis names another place")
}

func TestRedisThatCannotBeUsed(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	broken := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(broken, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for why, redis := range map[string]string{
		"cannot reach Redis at 127.0.0.1:1": "{addresses: ['127.0.0.1:1']}",
		"store.redis.password_file: ":       "{addresses: ['127.0.0.1:1'], password_file: /nowhere/at/all}",
		"holds no certificate": "{addresses: ['127.0.0.1:1'], tls: true, ca_file: '" + broken +
			"'}",
		"is not the address of a server":            "{addresses: [localhost]}",
		"no server: expected HOST:PORT":             "{tls: true}",
		"is not a prefix of keys":                   "{addresses: ['127.0.0.1:1'], prefix: '{}'}",
		"expected 1 to 1024":                        "{addresses: ['127.0.0.1:1'], partitions: 5000}",
		"is not one of replica, disk, none":         "{addresses: ['127.0.0.1:1'], durability: hope}",
		"connections are not encrypted":             "{addresses: ['127.0.0.1:1'], ca_file: ca.pem}",
		"store.redis.lease: 1ms: expected at least": "{addresses: ['127.0.0.1:1'], lease: 1ms}",
	} {
		r := runCommand(t, v.CrawlArgs("-c", testfile.Write(t, "p.yaml", "project: shop\nstore: {redis: "+redis+"}\n"),
			"http://shop.example/")...)
		if r.code == command.ExitDone || !strings.Contains(r.stderr, why) {
			t.Errorf("%s: exit %d, %s; want %q", redis, r.code, r.stderr, why)
		}
	}
	r := runCommand(t, v.CrawlArgs("-c", testfile.Write(t, "p.yaml", "store: {redis: {addresses: ['127.0.0.1:1']}}\n"),
		"http://shop.example/")...)
	r.want(t, command.ExitUsage, "needs a name")
}

// The limits of sort links and feeds hold where the seen set is in Redis, for each run of a crawl, and no page is
// lost.
func TestSortLinkAndFeedLimitsOnRedis(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	for _, tt := range []struct{ host, form, reason string }{
		{"autoindex.test", "?C=", "sort_links"}, {"blog.test", "/feed/", "feeds"},
	} {
		sites := crawltest.ApplicationSites()
		site := sites[slices.IndexFunc(sites, func(s crawltest.ApplicationSite) bool { return s.Site.Host == tt.host })]
		site.Site.Latency = crawltest.Latency{}
		v := daemontest.NewWebFixture(t, site.Site)
		file := testfile.Write(t, "p.yaml",
			"discover: {max_sort_links: 8, max_feeds: 8}\n"+daemontest.RedisField(c, ", durability: none"))
		runCommand(t, v.CrawlArgs("-c", file, "--max-pages=40", "http://"+tt.host+"/")...).want(t, command.ExitDone,
			"reason="+tt.reason)
		runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-pages=0", "--progress=none").want(t,
			command.ExitDone)
		urls := daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)))
		limited := 0
		for _, u := range urls {
			if strings.Contains(u, tt.form) {
				limited++
			}
		}
		if limited < 8 || limited > 16 {
			t.Errorf("%d URLs of %s have %s, want 8 to 16", limited, tt.host, tt.form)
		}
		for _, page := range site.WantedPages {
			if !slices.Contains(urls, page) {
				t.Errorf("%s was not visited", page)
			}
		}
	}
}
