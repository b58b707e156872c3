package daemon

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// asCommand in the environment makes the test binary the decorum command.
const asCommand = "DECORUM_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main(nil)
	}
	os.Exit(m.Run())
}

// command returns the decorum command, to be run as a process of its own.
func command(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	return c, &stderr
}

// killWeb is a web of sites that take some seconds to crawl, with what makes a
// restart delicate: a Crawl-delay longer than the crawl's own, closed pages,
// redirects, a sitemap, a server in trouble.
func killWeb(delay time.Duration) *crawltest.Web {
	const pages = 30
	var sites []crawltest.Site
	var seeds []string
	for i := range 6 {
		host := fmt.Sprintf("h%d.example", i)
		seeds = append(seeds, "http://"+host+"/")
		text, rest := "User-agent: *\nDisallow: /closed\nSitemap: http://"+host+"/sitemap.xml\n", time.Duration(0)
		if i == 0 {
			text, rest = text+"Crawl-delay: 0.3\n", 3*delay
		}
		site := crawltest.Site{
			Host: host, Pages: map[string]crawltest.Page{},
			Robots: crawltest.Lasting(crawltest.Robots{Answer: crawltest.Text(text), Delay: rest,
				Disallow: func(p string) bool { return strings.HasPrefix(p, "/closed") }}),
		}
		for n := range pages {
			// Each page links to the next two, so that a lost link loses the rest.
			site.Pages[fmt.Sprintf("/%d", n)] = crawltest.Always(crawltest.HTML(fmt.Sprintf(
				`<a href="/%d">next</a><a href="/%d">after</a><a href="/closed/%d">closed</a><a href="http://h%d.example/%d">there</a>`,
				n+1, n+2, n, (i+1)%6, n)))
		}
		site.Pages["/"] = crawltest.Always(crawltest.Redirect(302, "/0"))
		site.Pages["/sitemap.xml"] = crawltest.Always(crawltest.Typed("application/xml",
			`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://`+host+`/listed</loc></url></urlset>`))
		site.Pages["/listed"] = func(r crawltest.Request) crawltest.Answer {
			if r.Nth == 1 {
				return crawltest.Status(503)
			}
			return crawltest.HTML("listed")
		}
		sites = append(sites, site)
	}
	web := crawltest.New(sites...)
	web.Plan = crawltest.Plan{Seeds: seeds, MaxDepth: 100}
	return web
}

// TestKill: a crawl that is killed at random moments and goes on. Both runs'
// output together covers every page, and the server sees no gap that is too
// short, across the restarts too.
func TestKill(t *testing.T) {
	const kills, delay = 20, 100 * time.Millisecond
	web := killWeb(delay)
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))

	data := filepath.Join(t.TempDir(), "data")
	flags := []string{"--data", data, "--contact=mailto:bot@example.com", "--allow-private", "--connect-to=::" + server.Addr,
		"--delay", delay.String(), "--max-depth=100", "--progress=none", "--log-level=error"}
	begin := append(append([]string{"crawl"}, flags...), web.Plan.Seeds...)
	goOn := append([]string{"crawl", "--resume"}, flags...)
	var starts []time.Time
	args := begin
	for len(starts) < kills {
		starts = append(starts, time.Now())
		c, stderr := command(t, args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100*time.Millisecond + time.Duration(chance.Int64N(int64(400*time.Millisecond))))
		if err := c.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil || c.ProcessState.Exited() {
			t.Fatalf("run %d ended before it was killed: %v\n%s", len(starts), err, stderr)
		}
		if _, err := os.Stat(filepath.Join(data, storeFile)); err == nil {
			args = goOn
		}
	}
	starts = append(starts, time.Now())
	c, stderr := command(t, args...)
	if err := c.Run(); err != nil {
		t.Fatalf("the last run: %v\n%s", err, stderr)
	}
	got := urls(records(t, filepath.Join(data, outputFile)))
	repeats := len(got)
	got = slices.Compact(got)
	repeats -= len(got)
	if diff := cmp.Diff(web.Reachable(), got); diff != "" {
		t.Errorf("pages that should be in the output (-), and that are (+):\n%s", diff)
	}
	report := web.Judge(crawltest.Options{MinDelay: delay, Product: "decorum", Restarts: starts[1:]})
	if !report.OK() {
		t.Errorf("the judge says:\n%s", report)
	}
	t.Logf("%d pages, %d kills, %d lines of output repeated", len(got), kills, repeats)
}
