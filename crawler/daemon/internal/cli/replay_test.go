package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// replaySites returns sites with rules, sitemaps, redirects and a redirect loop. The sites do not link
// to each other, so that the URLs found on one do not depend on another.
func replaySites() (sites []crawltest.Site, seeds []string) {
	index := sitemapSite("index.test", "Disallow: /closed\nSitemap: http://index.test/index.xml\n",
		map[string]crawltest.PageFunc{
			"/index.xml": sitemapPage("index", "http://index.test/a.xml"),
			"/a.xml": sitemapPage("urls",
				append(numberedURLs("http://index.test/a", 0, 12), "http://index.test/closed/1",
					"http://index.test/a/closed")...),
		})
	moved := sitemapSite("moved.test", "", map[string]crawltest.PageFunc{
		"/rules.txt": crawltest.StaticPage(crawltest.Text("User-agent: *\nDisallow: /no\nSitemap: " +
			"http://moved.test/new.xml\n")),
		"/new.xml": sitemapPage("urls", append(numberedURLs("http://moved.test/", 0, 8),
			numberedURLs("http://moved.test/no", 0, 3)...)...),
	})
	moved.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Redirect(http.StatusFound,
		"/rules.txt")})
	clean := sitemapSite("clean.test", "Clean-param: ref\nSitemap: http://clean.test/all.xml\n",
		map[string]crawltest.PageFunc{
			"/all.xml": sitemapPage("urls", append(numberedURLs("http://clean.test/?ref=1&amp;p=", 0, 6),
				numberedURLs("http://clean.test/?ref=2&amp;p=", 0, 6)...)...),
		})
	links := `<a href="/loop">x</a><a href="/gone">x</a><a href="/zip">x</a><a href="/twice">x</a><a href="/twice#top">x</a>`
	trouble := sitemapSite("trouble.test", "", map[string]crawltest.PageFunc{
		"/":     crawltest.StaticPage(crawltest.HTML(links)),
		"/gone": crawltest.StaticPage(crawltest.Status(http.StatusGone)),
		"/loop": crawltest.StaticPage(crawltest.Redirect(http.StatusFound, "/loop?again")),
		"/zip": crawltest.StaticPage(crawltest.Response{Body: links, GzipIfAccepted: true,
			Header: http.Header{"Content-Type": {"text/html"}}}),
	})
	sites = []crawltest.Site{daemontest.ShopSite(), index, moved, clean, trouble}
	for i, s := range sites {
		sites[i].Latency = crawltest.Latency{}
		seeds = append(seeds, "http://"+s.Host+"/")
	}
	return sites, seeds
}

// recordReplayCrawl crawls replaySites with a ledger and an archive.
func recordReplayCrawl(t *testing.T) *daemontest.WebFixture {
	t.Helper()
	sites, seeds := replaySites()
	v := daemontest.NewWebFixture(t, sites...)
	project := testfile.Write(t, "p.yaml", fmt.Sprintf("output: {ledger: true, ledger_refusals: true, warc: %q}\n",
		filepath.Join(v.Dir, "warc"))+
		"politeness: {adaptive: 0}\n")
	runCommand(t, v.CrawlArgs(append([]string{"-c", project, "--delay=5ms"}, seeds...)...)...).want(t, command.ExitDone)
	return v
}

// A replay repeats every decision of a recorded crawl: robots.txt and its redirects, sitemaps,
// Clean-param, failures, refusals and their reasons. It reports decisions that another project would
// have made, and records that were changed.
func TestReplay(t *testing.T) {
	t.Parallel()
	v := recordReplayCrawl(t)
	requested := len(v.Web.Log())
	runCommand(t, "replay", v.DataDir()).want(t, command.ExitDone,
		fmt.Sprintf("requests: %d, refusals: 5,", requested), "differences: 0")
	project, ledger := filepath.Join(v.DataDir(), datadir.ProjectFile),
		filepath.Join(v.DataDir(), datadir.LedgerDir, "ledger-000001.jsonl")
	for _, tt := range []struct{ name, file, from, to, says string }{
		{"another pace", project, "delay: 5ms", "delay: 30s", "no request is due for another"},
		{"another scope", project, "max_depth: 32", "max_depth: 0", "it was requested, and would not be requested now"},
		{"no sitemaps", project, "sitemaps: true", "sitemaps: false",
			"it was requested, and would now never be requested"},
		{"no Clean-param", project, "extensions: true", "extensions: false",
			"it was never requested, and would be requested now"},
		{"a verdict", ledger, `"rule":"allow: /a","line":2`, `"rule":"allow: /a","line":4`,
			"its verdict was yes by allow: /a"},
		{"a mark", ledger, `"rule":"allow: /a","line":2`, `"rule":"allow: /a","line":2,"not_for_indexing":true`,
			"its verdict was yes, not for indexing, by allow: /a"},
		{"an exempt agent", project, "product: decorum", "product: YandexDirect",
			"exemption from rules for * was false, and is true"},
		{"another family", project, "wider: []", "wider: [family]",
			"the list of fallback tokens was none, and is family"},
		{"a URL", ledger, `"url":"http://index.test/a7"`, `"url":"http://index.test/a77"`,
			"it was never requested, and would be requested now"},
		{"a referrer", ledger, `"referrer":"http://moved.test/new.xml"`,
			`"referrer":"http://moved.test/"`, "it was found on"},
		{"a refusal", ledger, `"why":"robots http://index.test/closed/1`,
			`"url":"http://index.test/closed/2","why":"robots`, "would now be refused instead"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := os.ReadFile(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			other := strings.Replace(string(text), tt.from, tt.to, 1)
			if other == string(text) {
				t.Fatalf("%s does not say %q:\n%s", tt.file, tt.from, text)
			}
			overwriteFile(t, tt.file, []byte(other))
			runCommand(t, "replay", "--limit=0", v.DataDir()).want(t, command.ExitCheckFailed, tt.says)
			overwriteFile(t, tt.file, text)
		})
	}
	if n := len(v.Web.Log()); n != requested {
		t.Errorf("replays made %d requests", n-requested)
	}
	if err := os.RemoveAll(filepath.Join(v.Dir, "warc")); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "replay", v.DataDir()).want(t, command.ExitFailed, "no WARC files")
}

// If the clock of the machine was set during the crawl, the replay subtracts the change: two days did
// not pass, and no robots.txt has expired.
func TestReplayOfClockThatWasSet(t *testing.T) {
	t.Parallel()
	v := recordReplayCrawl(t)
	file := filepath.Join(v.DataDir(), datadir.LedgerDir, "ledger-000001.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	half := len(lines) / 2
	const days = 48 * time.Hour
	output := regexp.MustCompile(`"(time|end)":"([^"]+)"`)
	for i := half; i < len(lines); i++ {
		lines[i] = output.ReplaceAllStringFunc(lines[i], func(s string) string {
			field := output.FindStringSubmatch(s)
			at, err := time.Parse(time.RFC3339Nano, field[2])
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%q:%q", field[1], at.Add(days).Format(time.RFC3339Nano))
		})
	}
	overwriteFile(t, file, []byte(strings.Join(lines, "")))
	runCommand(t, "replay", v.DataDir()).want(t, command.ExitCheckFailed,
		"robots.txt: it was never requested, and would be requested now")
	set := fmt.Sprintf("%s,\"clock\":{\"set_by_us\":%d}}\n", lines[half][:strings.Index(lines[half], `Z"`)+len(`Z"`)],
		days.Microseconds())
	overwriteFile(t, file, []byte(strings.Join(slices.Insert(lines, half, set), "")))
	runCommand(t, "replay", v.DataDir()).want(t, command.ExitDone, "differences: 0")
}

func overwriteFile(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReplayUsage(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, "replay", v.DataDir()).want(t, command.ExitUsage)
	runCommand(t, v.CrawlArgs("http://shop.example/")...).want(t, command.ExitDone)
	runCommand(t, "replay", v.DataDir()).want(t, command.ExitUsage, "wrote no WARC files")
	runCommand(t, "replay", "--limit=-1", v.DataDir()).want(t, command.ExitUsage, "--limit")
}

// A replay applies the crawl's purpose: it fetches tdmrep.json before the pages that wait for it,
// repeats its refusals, and takes the links of a withheld page from the ledger, because the archive has
// only the header of that page.
func TestReplayForPurposes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ purpose, other, says string }{
		{"search", "ai-train", "tdmrep.json: it was never requested, and would be requested now"},
		{"archive", "search", "/noindex: its content was used, and would now be withheld"},
		{"ai-input", "ai-train", "/usage: its content was used, and would now be withheld"},
		{"ai-train", "archive", "tdmrep.json: it was requested, and would now never be requested"},
	} {
		purpose, other, says := tt.purpose, tt.other, tt.says
		t.Run(purpose, func(t *testing.T) {
			v := daemontest.NewWebFixture(t, usageRulesSite())
			project := testfile.Write(t, "p.yaml",
				fmt.Sprintf("output: {ledger: true, ledger_refusals: true, warc: %q}\n", filepath.Join(v.Dir, "warc"))+
					"robots: {purpose: ["+purpose+"]}\npoliteness: {adaptive: 0}\n")
			runCommand(t, v.CrawlArgs("-c", project, "--delay=5ms", "http://a.example/")...).want(t, command.ExitDone)
			runCommand(t, "replay", "--limit=0", v.DataDir()).want(t, command.ExitDone,
				fmt.Sprintf("requests: %d,", len(v.Web.Log())), "differences: 0")
			project, text := filepath.Join(v.DataDir(), datadir.ProjectFile), ""
			if b, err := os.ReadFile(project); err != nil {
				t.Fatal(err)
			} else if text = strings.Replace(string(b), "- "+purpose, "- "+other, 1); text == string(b) {
				t.Fatalf("no purpose in %s:\n%s", project, b)
			}
			overwriteFile(t, project, []byte(text))
			runCommand(t, "replay", "--limit=0", v.DataDir()).want(t, command.ExitCheckFailed,
				fmt.Sprintf("the purpose was %s, and is %s", purpose, other), says)
		})
	}
}

// TestReplayResources: a replay gives the resources of a page that it takes from the ledger the depth of
// that page, as the crawl did.
func TestReplayResources(t *testing.T) {
	t.Parallel()
	home := crawltest.HTML("<link rel=stylesheet href=/a.css><a href=/deep>x</a>")
	home.Header.Set("X-Robots-Tag", "noai")
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(home),
		"/a.css": crawltest.StaticPage(crawltest.ResponseOfType("text/css", "a{b:url(/image)}"))},
		Fallback: crawltest.StaticPage(crawltest.ResponseOfType("image/png", "x"))})
	project := testfile.Write(t, "p.yaml",
		fmt.Sprintf("output: {ledger: true, warc: %q}\n", filepath.Join(v.Dir, "warc"))+
			"robots: {purpose: [ai-train]}\ndiscover: {resources: true}\nscope: {max_depth: 0}\n")
	runCommand(t, v.CrawlArgs("-c", project, "--delay=5ms", "http://a.example/")...).want(t, command.ExitDone, "pages: 3 (")
	runCommand(t, "replay", "--limit=0", v.DataDir()).want(t, command.ExitDone,
		fmt.Sprintf("requests: %d,", len(v.Web.Log())), "differences: 0")
}
