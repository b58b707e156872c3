package cli

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/doctest"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

var update = doctest.Update

func TestCrawl(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	r := runCommand(t, v.CrawlArgs("http://shop.example/")...)
	r.want(t, command.ExitDone, "pages: 5 (", "hosts: 1,", "\nstatus: 2xx 3, 3xx 1, 4xx 1\n",
		"blocked by robots.txt: 1", "left: 0 queued", "\n5 pages → "+filepath.Join(v.DataDir(), "pages.jsonl")+"\n")
	if strings.Contains(r.stderr, "  shop.example") {
		t.Errorf("the summary names a host as suspended: %s", r.stderr)
	}
	if diff := cmp.Diff(daemontest.ShopURLs,
		daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl")))); diff != "" {
		t.Error(diff)
	}
	if r := v.Web.Judge(crawltest.JudgeOptions{RequiredProductToken: "decorum"}); !r.OK() {
		t.Error(r)
	}
}

// Each line of output has exactly the documented fields, in their order.
func TestOutputFormat(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	r := runCommand(t, v.CrawlArgs("--output=-", "http://shop.example/")...)
	r.want(t, command.ExitDone)
	var lines []string
	for line := range strings.Lines(r.stdout) {
		lines = append(lines, maskVariableValues(line))
	}
	slices.Sort(lines)
	got, golden := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "output.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// maskVariableValues returns a line with the values replaced that differ between crawls.
func maskVariableValues(line string) string {
	for _, m := range masks {
		line = m.re.ReplaceAllString(line, m.replacement)
	}
	return strings.TrimSpace(line)
}

var masks = []struct {
	re          *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z"`), `"T"`},
	{regexp.MustCompile(`_ms":\d+`), `_ms":0`},
}

// A crawl that a limit stopped continues with --resume alone, from any directory, and repeats no
// visit.
func TestLimitAndResume(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("--max-pages=2", "--max-depth=7", "http://shop.example/")...).want(t, command.ExitDone,
		"stopped: the limit of pages is reached (limits.pages: 2). To continue:\n  decorum crawl --resume --data "+
			v.DataDir())
	t.Chdir(t.TempDir())
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-pages=0", "--progress=none").want(t,
		command.ExitDone, "pages: 3 (")
	if diff := cmp.Diff(daemontest.ShopURLs,
		daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), "pages.jsonl")))); diff != "" {
		t.Error(diff)
	}
	d, err := project.ReadFile(filepath.Join(v.DataDir(), datadir.ProjectFile))
	if err != nil || d.Scope.MaxDepth != 7 || d.Limits.Pages != 0 {
		t.Errorf("saved depth %d and limit %d, %v; want the values given last", d.Scope.MaxDepth, d.Limits.Pages, err)
	}
}

// With --quiet a crawl prints nothing but warnings and errors.
func TestQuiet(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	for _, tt := range []struct {
		args []string
		code int
		says string // empty: the crawl prints nothing
	}{
		{v.CrawlArgs("--quiet", "--max-pages=1", "http://shop.example/"), command.ExitDone, ""},
		{[]string{"crawl", "-q", "--resume", "--data", v.DataDir()}, command.ExitDone, ""},
		{[]string{"crawl", "-q", "--resume", "--data", v.DataDir(), "--max-time=1ns"}, command.ExitStopped,
			"decorum: stopped: the limit of time is reached"},
	} {
		r := runCommand(t, tt.args...)
		r.want(t, tt.code, tt.says)
		if tt.says == "" && r.stdout+r.stderr != "" || strings.Contains(r.stderr, "pages: ") {
			t.Errorf("%q prints %s%s", tt.args, r.stdout, r.stderr)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("--max-time=1ns", "http://shop.example/")...).want(t, command.ExitStopped,
		"stopped: the limit of time is reached")
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-time=0s", "--progress=none").want(t,
		command.ExitDone, "pages: 5 (")
}

// After a signal the visit in flight finishes, and no other begins.
func TestSignal(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	site := daemontest.ShopSite()
	site.Pages["/"] = func(crawltest.PageRequest) crawltest.Response {
		signals <- os.Interrupt
		return crawltest.Response{HeaderDelay: 50 * time.Millisecond,
			Header: http.Header{"Content-Type": {"text/html"}}, Body: "<a href=/a>"}
	}
	v := daemontest.NewWebFixture(t, site)
	runCommandWithSignals(t, signals, v.CrawlArgs("http://shop.example/")...).want(t, command.ExitStopped,
		"stopping: the visits in flight finish first", "stopped: it was interrupted", "pages: 1 (", "left: 1 queued")
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--progress=none").want(t, command.ExitDone, "pages: 1 (")
}

// A second signal aborts the visit in flight.
func TestSecondSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	site := daemontest.ShopSite()
	site.Pages["/"] = func(crawltest.PageRequest) crawltest.Response {
		signals <- os.Interrupt
		signals <- os.Interrupt
		return crawltest.Response{Fault: crawltest.Hang}
	}
	v := daemontest.NewWebFixture(t, site)
	runCommandWithSignals(t, signals, v.CrawlArgs("http://shop.example/")...).want(t, command.ExitStopped,
		"pages: 0 (", "left: 1 queued")
}

// Without --resume or --fresh, the state of an earlier crawl is not removed, and continued only by the same
// command.
func TestDataDirectory(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	foreignFile := filepath.Join(v.DataDir(), "notes.txt")
	runCommand(t, v.CrawlArgs("http://shop.example/a")...).want(t, command.ExitDone)
	if err := os.WriteFile(foreignFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	runCommand(t, v.CrawlArgs("http://shop.example/a")...).want(t, command.ExitDone,
		`msg="continuing the crawl of this project; --fresh starts a new one"`, "pages: 0 (",
		"\nnothing was left to visit; --fresh starts a new crawl\n")
	runCommand(t, v.CrawlArgs("http://shop.example/b")...).want(t, command.ExitUsage,
		v.DataDir()+" already holds a crawl: --resume continues it, --fresh moves its files aside and starts a new "+
			"one\nThis command has other settings than that crawl:\n"+
			"  seeds was http://shop.example/a, is http://shop.example/b\n",
		"another directory with --data")
	runCommand(t, v.CrawlArgs("--delay=2ms", "http://shop.example/a")...).want(t, command.ExitUsage,
		"  politeness.delay was ", ", is 2ms\nWith --resume,")
	runCommand(t, v.CrawlArgs("--resume", "http://shop.example/a")...).want(t, command.ExitDone, "pages: 0 (")
	runCommand(t, v.CrawlArgs("--fresh", "http://shop.example/a")...).want(t, command.ExitDone)
	for _, file := range []string{datadir.StoreFile, datadir.ProjectFile, datadir.OutputFile} {
		if moved, err := filepath.Glob(filepath.Join(v.DataDir(), "before-*", file)); err != nil || len(moved) != 1 {
			t.Errorf("%s: moved to %q, %v; want one place", file, moved, err)
		}
	}
	if _, err := os.Stat(foreignFile); err != nil {
		t.Errorf("a file that is not the crawl's was touched: %v", err)
	}
}

// The command that was stopped goes on with its visits when it is repeated, but not if its lines went to
// standard output.
func TestSameCommandContinues(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	for _, wantPages := range []string{"pages: 2 (", "pages: 2 (", "pages: 1 ("} {
		runCommand(t, v.CrawlArgs("--max-pages=2", "http://shop.example/")...).want(t, command.ExitDone, wantPages)
	}
	if diff := cmp.Diff(daemontest.ShopURLs, daemontest.SortedURLs(outputRecords(t, v))); diff != "" {
		t.Error(diff)
	}
	// A file of seeds that has changed makes another crawl.
	v = daemontest.NewWebFixture(t, daemontest.ShopSite())
	seeds := testfile.Write(t, "seeds.txt", "http://shop.example/\n")
	config := testfile.Write(t, "shop.yaml", "seed_files: ["+seeds+"]\n")
	args := v.CrawlArgs("--max-pages=1", "-c", config)
	runCommand(t, args...).want(t, command.ExitDone)
	runCommand(t, args...).want(t, command.ExitDone, "continuing the crawl")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(seeds, later, later); err != nil {
		t.Fatal(err)
	}
	runCommand(t, args...).want(t, command.ExitUsage, "--resume continues it",
		"the file "+seeds+" of seed_files has changed")
	v = daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("--max-pages=2", "--output=-", "http://shop.example/")...).want(t, command.ExitDone)
	runCommand(t, v.CrawlArgs("--max-pages=2", "--output=-", "http://shop.example/")...).want(t, command.ExitUsage,
		"--resume continues it")
}

// A crawl that sends nothing leaves nothing in the way of the next command, and no file of another program
// is touched.
func TestNothingSent(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	const closed = "http://127.0.0.1:1/"
	refused := []string{"crawl", "--data", v.DataDir(), "--contact=mailto:a@b.example", "--progress=none", closed}
	want := "no request was sent, so " + v.DataDir() + " keeps nothing of this run"
	runCommand(t, refused...).want(t, command.ExitFailed, want)
	if _, err := os.Stat(v.DataDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory: %v, want none", err)
	}
	r := runCommand(t, append(refused, "--log-format=json")...)
	r.want(t, command.ExitFailed, `"keeps_nothing":true`)
	if strings.Contains(r.stderr, datadir.OutputFile) {
		t.Errorf("the record names an output that is removed:\n%s", r.stderr)
	}
	notes := filepath.Join(v.DataDir(), "notes.txt")
	if err := errors.Join(os.MkdirAll(v.DataDir(), 0o700), os.WriteFile(notes, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	runCommand(t, refused...).want(t, command.ExitFailed, want)
	if files, err := os.ReadDir(v.DataDir()); err != nil || len(files) != 1 || files[0].Name() != "notes.txt" {
		t.Errorf("left are %v, %v; want notes.txt", files, err)
	}
	// The state of an earlier run is kept.
	runCommand(t, v.CrawlArgs("http://shop.example/")...).want(t, command.ExitDone, "pages: 5 (")
	r = runCommand(t, append(refused, "--resume")...)
	if hasCrawl, err := datadir.StateDir(v.DataDir()).HasCrawl(); err != nil || !hasCrawl ||
		strings.Contains(r.stderr, "keeps nothing") {
		t.Errorf("the state of the earlier run is gone: %v\n%s", err, r.stderr)
	}
}

// A crawl whose seed has a private address says so in its summary, with the settings that allow it.
func TestPrivateSeed(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	args := []string{"crawl", "--data", t.TempDir(), "--contact=mailto:a@b.example", "--progress=none", server.URL}
	r := runCommand(t, args...)
	r.want(t, command.ExitFailed, "\n  127.0.0.1: no visit may connect to it: ",
		"a loopback address; --allow-private or fetch.allow_private ")
	if strings.Contains(r.stderr, "it has not answered") {
		t.Errorf("the summary names another cause:\n%s", r.stderr)
	}
	runCommand(t, append(args, "--log-format=json")...).want(t, command.ExitFailed,
		`"set_aside":[{"host":"127.0.0.1","why":"no visit may connect to it: `)
}

// A crawl without a delay warns once, unless its hosts are local. No request is sent to either address.
func TestWarningOfNoDelay(t *testing.T) {
	const warning = `level=WARN msg="politeness.delay is 0: requests to a host follow each other without a fixed pause"`
	for seeds, want := range map[string]int{"http://127.0.0.1:1/": 0, "http://192.0.2.1/ http://192.0.2.2/": 1} {
		r := runCommand(t, append([]string{"crawl", "--data", t.TempDir(), "--contact=mailto:a@b.example",
			"--progress=none", "--delay=0"}, strings.Fields(seeds)...)...)
		r.want(t, command.ExitFailed)
		if n := strings.Count(r.stderr, warning); n != want {
			t.Errorf("%s: %d warnings, want %d:\n%s", seeds, n, want, r.stderr)
		}
	}
}

// A crawl with rotated output files continues them, and never overwrites them or mixes them with those
// of another crawl.
func TestRotatedOutput(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	project := testfile.Write(t, "p.yaml", "output: {jsonl_max_size: 1KiB}\n")
	out := filepath.Join(v.DataDir(), datadir.OutputFile)
	runCommand(t, v.CrawlArgs("-c", project, "--max-pages=3", "http://shop.example/")...).want(t, command.ExitDone)
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-pages=0",
		"--progress=none").want(t, command.ExitDone)
	testfile.RotatedLines(t, out, 1<<10)
	if diff := cmp.Diff(daemontest.ShopURLs, daemontest.SortedURLs(daemontest.ReadRecords(t, out))); diff != "" {
		t.Error(diff)
	}
	rotated, err := sinks.RotatedJSONLFiles(out)
	if err != nil || len(rotated) == 0 {
		t.Fatalf("full files %v (%v), want some", rotated, err)
	}
	runCommand(t, "report", "--params", "--data", v.DataDir()).want(t, command.ExitDone, "from the 3 pages")

	runCommand(t, v.CrawlArgs("--fresh", "http://shop.example/a")...).want(t, command.ExitDone)
	moved, err := filepath.Glob(filepath.Join(v.DataDir(), "before-*", "pages*.jsonl"))
	if err != nil || len(moved) != len(rotated)+1 {
		t.Errorf("%q were moved aside (%v), want all %d files of lines", moved, err, len(rotated)+1)
	}
	other := filepath.Join(filepath.Dir(moved[0]), datadir.OutputFile)
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	runCommand(t, v.CrawlArgs("--fresh", "--output", other, "http://shop.example/")...).want(t, command.ExitUsage,
		"Z-000001.jsonl exists, and a new crawl does not write over it")
}

func TestOutputIsNotOverwritten(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	out := filepath.Join(v.Dir, "out.jsonl")
	runCommand(t, v.CrawlArgs("--output", out, "--max-pages=1", "http://shop.example/")...).want(t, command.ExitDone)
	runCommand(t, v.CrawlArgs("--output", out, "--fresh", "http://shop.example/")...).want(t, command.ExitUsage,
		out+" exists, and a new crawl does not write over it: move it away, or name another file with --output")
	if hasCrawl, err := datadir.StateDir(v.DataDir()).HasCrawl(); err != nil || !hasCrawl {
		t.Errorf("the refused crawl has moved the state aside: %v", err)
	}
	runCommand(t, "crawl", "--resume", "--data", v.DataDir(), "--max-pages=0",
		"--progress=none").want(t, command.ExitDone)
	if diff := cmp.Diff(daemontest.ShopURLs, daemontest.SortedURLs(daemontest.ReadRecords(t, out))); diff != "" {
		t.Error(diff)
	}
}

// A project may be moved, and its seeds may come from files.
func TestSeedFiles(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	seeds := testfile.Write(t, "seeds.txt", "# pages\n\nhttp://shop.example/a \nhttp://shop.example/missing\n")
	project := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\nscope: {max_depth: 0}\nseed_files: ["+seeds+"]\n")
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitDone, "pages: 2 (")

	v = daemontest.NewWebFixture(t, daemontest.ShopSite())
	if err := os.WriteFile(seeds, []byte("http://shop.example/\nshop.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runCommand(t, v.CrawlArgs("-c", project)...).want(t, command.ExitUsage,
		"seeds.txt:2: the line is not a URL the crawl can visit")
	if log := v.Web.Log(); len(log) > 0 {
		t.Errorf("%d requests were sent before the seeds were read", len(log))
	}
}

func TestSitemapsOnly(t *testing.T) {
	site := daemontest.ShopSite()
	site.Robots = crawltest.StaticRobots(
		crawltest.RobotsSpec{Response: crawltest.Text("Sitemap: http://shop.example/map.txt\n")})
	site.Pages["/map.txt"] = crawltest.StaticPage(crawltest.Text("http://shop.example/b?x=1&y=2\n"))
	v := daemontest.NewWebFixture(t, site)
	project := testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\ndiscover: {links: false, canonical: false}\n")
	runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/a")...).want(t, command.ExitDone,
		"pages: 2 (", "sitemaps: 1")

	site.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
		"Sitemap: http://shop.example/map.txt\nSitemap: http://shop.example/more.txt\n")})
	v = daemontest.NewWebFixture(t, site)
	project = testfile.Write(t, "p.yaml",
		"agent: {contact: 'mailto:a@b.example'}\ndiscover: {links: false, canonical: false, max_sitemaps: 1}\n")
	runCommand(t, v.CrawlArgs("-c", project, "http://shop.example/a")...).want(t, command.ExitDone, "pages: 2 (",
		"sitemaps: 1", "leads to more sitemaps than are read")
}
