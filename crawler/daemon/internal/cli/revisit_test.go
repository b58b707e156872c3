package cli

import (
	"net/http"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// unchangingPageSite returns a site with one page that never changes and has a validator.
func unchangingPageSite() crawltest.Site {
	page := crawltest.ChangingPage{SendETag: true, ResponseAfterChanges: func(int) crawltest.Response {
		return crawltest.HTML("<title>x</title>")
	}}
	return crawltest.Site{Host: "shop.example", Fallback: page.Respond}
}

// A crawl with revisits ends when all pages wait for their revisit, prints when the first is due, and
// visits the due ones when it is resumed.
func TestRevisitAndResume(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, unchangingPageSite())
	project := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nrevisit: {mode: interval, every: 4s}\n")
	r := runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/")...)
	r.want(t, command.ExitDone, "pages: 1 (", "resting until their revisit: 1, the first is due at ")
	due, err := time.Parse(time.RFC3339, regexp.MustCompile(`due at (\S+)`).FindStringSubmatch(r.stderr)[1])
	if err != nil || time.Until(due) > 4*time.Second {
		t.Errorf("the first is due at %v, %v", due, err)
	}
	time.Sleep(time.Until(due.Add(time.Second))) // the time is printed in whole seconds
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone,
		"pages: 1 (", "revisits: 1, unchanged (including sitemaps): 1, scheduled earlier by sitemaps: 0",
		"resting until their revisit: 1")
	rs := daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl"))
	if len(rs) != 2 || rs[0].SHA256 == "" || rs[1].Status != http.StatusNotModified ||
		rs[1].URLSource != "revisit" || rs[1].SHA256 != "" {
		t.Errorf("records %+v: want a first visit, and a revisit that was answered with 304", rs)
	}
}

// A crawl visits max_pages_per_host pages of a host, and more when the limit is raised.
func TestPagesPerHostAndResume(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := func(pages string) string {
		return testfile.Write(t, "p.yaml",
			"agent: {contact: 'mailto:a@b.example'}\nscope: {max_pages_per_host: "+pages+"}\n")
	}
	runCommand(t, v.CrawlArgs("-c", project("2"), "http://shop.example/")...).want(t, command.ExitDone, "pages: 2 (",
		"left: 3 queued, 3 of them on hosts that do not answer, may not be visited, require too "+
			"long a delay or have reached a limit\n"+
			"  shop.example: it has reached its limit of 2 pages, until ")
	runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone, "shop.example is set aside until ",
		": it has reached its limit of 2 pages")
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone, "pages: 0 (")
	runCommand(t, v.CrawlArgs("--resume", "-c", project("4"), "http://shop.example/")...).want(t,
		command.ExitDone, "pages: 2 (")
	runCommand(t, v.CrawlArgs("--resume", "-c", project("0"), "http://shop.example/")...).want(t, command.ExitDone,
		"pages: 1 (", "left: 0 queued")
	if r := v.Web.Judge(crawltest.JudgeOptions{RequiredProductToken: "decorum"}); !r.OK() {
		t.Error(r)
	}
}

// A crawl reads max_bytes_per_host bytes of a host, and more when the limit is raised.
func TestBytesPerHostAndResume(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := func(bytes string) string {
		return testfile.Write(t, "p.yaml",
			"agent: {contact: 'mailto:a@b.example'}\nscope: {max_bytes_per_host: "+bytes+"}\n")
	}
	runCommand(t, v.CrawlArgs("-c", project("41B"), "http://shop.example/")...).want(t, command.ExitDone,
		"left: ", "have reached a limit")
	runCommand(t, "report", "--data", v.DataDir()).want(t, command.ExitDone, "shop.example is set aside until ",
		": it has reached its limit of 41 bytes")
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone, "pages: 0 (")
	runCommand(t, v.CrawlArgs("--resume", "-c", project("0"), "http://shop.example/")...).want(t,
		command.ExitDone, "left: 0 queued")
}

func TestBytesLimitAndResume(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\nlimits: {bytes: 41B}\n")
	runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/")...).want(t, command.ExitDone,
		"stopped: the limit of bytes is reached", "pages: 1 (")
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t,
		command.ExitDone, "pages: 1 (")
}

// The summary counts failed visits by class.
func TestFailuresText(t *testing.T) {
	var st crawler.Stats
	if got := failureCountsText(st); got != "" {
		t.Errorf("%q where nothing failed", got)
	}
	st.Failures[crawler.Throttled], st.Failures[crawler.Malformed] = 3, 1
	if got := failureCountsText(st); got != "throttled 3, malformed 1" {
		t.Errorf("got %q", got)
	}
}
