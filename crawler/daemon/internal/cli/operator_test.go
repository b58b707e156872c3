package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/testfile"
)

// A second crawl with the same data directory fails and changes nothing there, whatever its flags.
func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=1")...).want(t, command.ExitDone)
	before := readTree(t, v.Dir)
	lock, err := datadir.StateDir(v.DataDir()).Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, args := range [][]string{
		v.CrawlArgs("--resume", "--delay=9s"),
		v.CrawlArgs("--fresh", "http://shop.example/"),
		v.CrawlArgs("http://shop.example/"),
	} {
		runCommand(t, args...).want(t, command.ExitFailed,
			fmt.Sprintf("in use by process %d: %s", os.Getpid(), v.DataDir()))
	}
	if diff := cmp.Diff(before, readTree(t, v.Dir)); diff != "" {
		t.Error(diff)
	}
}

// readTree returns the files below dir with their content.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, e := os.ReadFile(p)
			files[p], err = string(text), e
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// --fresh never loses the files of an earlier crawl, however often it is used.
func TestStartFreshTwice(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	for range 4 {
		runCommand(t, v.CrawlArgs("--fresh", "http://shop.example/")...).want(t, command.ExitDone)
	}
	movedOutputs, err := filepath.Glob(filepath.Join(v.DataDir(), "before-*", datadir.OutputFile))
	if err != nil || len(movedOutputs) != 3 {
		t.Errorf("%d earlier outputs are kept (%v), want 3", len(movedOutputs), err)
	}
}

// --fresh does not move a file called "-" away: the name stands for standard output.
func TestFreshToStandardOutput(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	t.Chdir(t.TempDir())
	writeFile(t, "-", "kept")
	runCommand(t, v.CrawlArgs("--fresh", "http://shop.example/", "--max-pages=1", "--data=.", "--output=-")...).want(t,
		command.ExitDone, `"url":"http://shop.example/"`)
	if text, err := os.ReadFile("-"); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
}

// --fresh finds out that the output cannot be written before it moves the old crawl.
func TestFreshWithBadOutput(t *testing.T) {
	t.Parallel()
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=1")...).want(t, command.ExitDone)
	before := readTree(t, v.Dir)
	runCommand(t, v.CrawlArgs("--fresh", "http://shop.example/", "--output="+os.DevNull+"/x")...).want(t,
		command.ExitUsage, "files of the output: ", os.DevNull)
	runCommand(t, v.CrawlArgs("--resume", "--output", filepath.Join(v.DataDir(), datadir.StoreFile))...).want(t,
		command.ExitUsage, "is a file of the crawl's own state")
	runCommand(t, v.CrawlArgs("--fresh", "http://shop.example/", "--warc",
		filepath.Join(v.DataDir(), datadir.LedgerDir))...).want(t,
		command.ExitUsage, "--warc: ", "is a file of the crawl's own state")
	if diff := cmp.Diff(before, readTree(t, v.Dir)); diff != "" {
		t.Error(diff)
	}
}

// A crawl resumed with a narrower scope applies it to known URLs too, and visits them again when the
// scope is widened.
func TestResumeWithAnotherScope(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	runCommand(t, v.CrawlArgs("http://shop.example/", "--max-pages=1")...).want(t, command.ExitDone)
	runCommand(t, v.CrawlArgs("--resume", "--max-pages=0", "--max-depth=0")...).want(t,
		command.ExitDone, "pages: 0 (", "parked: 4")
	runCommand(t, v.CrawlArgs("--resume", "--max-depth=9")...).want(t, command.ExitDone, "pages: 4 (")
	if diff := cmp.Diff(daemontest.ShopURLs,
		daemontest.SortedURLs(daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)))); diff != "" {
		t.Error(diff)
	}
}

// A crawl resumed with another product token obeys the rules for that token: pages that were
// disallowed become allowed, and the other way round.
func TestResumeAsAnotherAgent(t *testing.T) {
	page := crawltest.StaticPage(crawltest.HTML("<a href=/a>a</a><a href=/b>b</a>"))
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example", Fallback: page,
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{
			Response: crawltest.Text("User-agent: abot\nDisallow: /b\n\nUser-agent: bbot\nDisallow: /a\n")})})
	runCommand(t, v.CrawlArgs("http://a.example/", "--agent=abot", "--max-pages=1")...).want(t, command.ExitDone)
	runCommand(t, v.CrawlArgs("--resume", "--max-pages=0", "--agent=abot")...).want(t,
		command.ExitDone, "pages: 1 (", "parked: 1")
	runCommand(t, v.CrawlArgs("--resume", "--agent=bbot")...).want(t, command.ExitDone, "pages: 1 (", "left: 0 queued")
	want := []string{"http://a.example/", "http://a.example/a", "http://a.example/b"}
	if got := daemontest.SortedURLs(daemontest.ReadRecords(t,
		filepath.Join(v.DataDir(), datadir.OutputFile))); !slices.Equal(got, want) {
		t.Errorf("visited %q, want %q", got, want)
	}
}

// A crawl with a purpose does not visit pages that may not be used for it.
func TestPurpose(t *testing.T) {
	for _, tt := range []struct{ robots, says string }{
		{"", "pages: 1 ("},
		{"robots: {purpose: [search]}\n", "pages: 1 ("},
		{"robots: {purpose: [search, ai-train]}\n", "pages: 0 ("},
	} {
		v := daemontest.NewWebFixture(t,
			crawltest.Site{Host: "a.example",
				Pages: map[string]crawltest.PageFunc{"/": crawltest.StaticPage(crawltest.HTML("x"))},
				Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Text(
					"User-agent: *\nContent-Signal: search=yes, ai-train=no\n")})})
		config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+tt.robots)
		exit := command.ExitDone
		if strings.HasPrefix(tt.says, "pages: 0") {
			exit = command.ExitFailed
		}
		runCommand(t, v.CrawlArgs("-c", config, "http://a.example/")...).want(t, exit, tt.says)
	}
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	for text, says := range map[string]string{
		"robots: {purpose: [fun]}\n":                       `"fun" is not one of search, ai-input, ai-train, archive`,
		"robots: {purpose: [search], extensions: false}\n": "robots.extensions: false ignores",
	} {
		config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+text)
		runCommand(t, v.CrawlArgs("-c", config, "http://shop.example/")...).want(t, command.ExitUsage, says)
	}
}

// Seeds that the crawl cannot visit are reported.
func TestSeedsThatCannotBeVisited(t *testing.T) {
	v := daemontest.NewWebFixture(t, daemontest.ShopSite())
	empty := testfile.Write(t, "empty.txt", "# nothing\n\n")
	config := func(text string) string {
		return testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\n"+text)
	}
	runCommand(t, v.CrawlArgs("-c", config("seed_files: ["+empty+"]\n"))...).want(t, command.ExitUsage,
		"the seed files contain no URL")
	runCommand(t, v.CrawlArgs("-c", config("seed_files: ["+os.DevNull+"]\n"))...).want(t,
		command.ExitUsage, "is not a regular file")
	runCommand(t, v.CrawlArgs("gopher://shop.example/")...).want(t, command.ExitUsage, "not a URL the crawl can visit")
	runCommand(t, v.CrawlArgs("-c", config("seeds: ['http://shop.example/a']\nscope: {exclude: [/a]}\n"))...).want(t,
		command.ExitFailed, "a seed is out of scope",
		"no seed led to a page:\n  http://shop.example/a is out of scope: matches an exclude pattern")
}

func TestParseSeedLine(t *testing.T) {
	for line, want := range map[string]string{
		"http://a.test/":              "http://a.test/",
		"  http://a.test/#top  # why": "http://a.test/#top",
		"http://a.test/\t# why":       "http://a.test/",
		"# why":                       "",
		"":                            "",
		"\ufeffhttp://a.test/":        "http://a.test/",
	} {
		if got := project.ParseSeedLine(line); got != want {
			t.Errorf("%q names %q, want %q", line, got, want)
		}
	}
}

// The record of a page whose body was not read completely has no hash, and gives the reason.
func TestRecordOfCutBody(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example", Pages: map[string]crawltest.PageFunc{
		"/":      crawltest.StaticPage(crawltest.HTML("<a href=/long>x</a><a href=/film>x</a>")),
		"/long":  crawltest.StaticPage(crawltest.HTML(strings.Repeat("x", 5000))),
		"/film":  crawltest.StaticPage(crawltest.ResponseOfType("video/mp4", "moo")),
		"/short": crawltest.StaticPage(crawltest.HTML("x")),
	}})
	config := testfile.Write(t, "p.yaml", "agent: {contact: 'mailto:a@b.example'}\nfetch: {max_body: 1KiB}\n")
	runCommand(t, v.CrawlArgs("-c", config, "http://a.example/", "http://a.example/short")...).want(t, command.ExitDone)
	for _, r := range daemontest.ReadRecords(t, filepath.Join(v.DataDir(), datadir.OutputFile)) {
		why := map[string]string{"http://a.example/long": "body cut at 1024 bytes",
			"http://a.example/film": "body not read: its content type is not wanted"}[r.URL]
		if r.Error != why || (r.SHA256 == "") != (why != "") {
			t.Errorf("%s: error %q, sha256 %q; want %q", r.URL, r.Error, r.SHA256, why)
		}
	}
}

// A signal ends a robots check that waits for a server which never answers.
func TestRobotsCheckStops(t *testing.T) {
	v := daemontest.NewWebFixture(t, crawltest.Site{Host: "a.example",
		Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: crawltest.Response{Fault: crawltest.Hang}})})
	signals := make(chan os.Signal, 1)
	go func() {
		for len(v.Web.Log()) == 0 {
			time.Sleep(time.Millisecond)
		}
		signals <- os.Interrupt
	}()
	runCommandWithSignals(t, signals, "robots", "check", "--agent=abot", "--allow-private",
		"--connect-to=::"+v.Addr, "http://a.example/").
		want(t, command.ExitStopped, "interrupted")
}
