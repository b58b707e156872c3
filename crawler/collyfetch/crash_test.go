package collyfetch_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testwait"
	"github.com/decorum-crawler/decorum/politeness"
)

const programEnv = "COLLYFETCH_TEST_SERVER"

// crashPrograms are the programs that a test starts and kills.
var crashPrograms = map[string]func(*collyfetch.Crawl) error{"chain": followChain, "forms": postForms}

// TestMain runs one of crashPrograms instead of the tests if the environment names one.
func TestMain(m *testing.M) {
	if addr := os.Getenv(programEnv); addr != "" {
		if err := runCrashProgram(addr, os.Args[1], crashPrograms[os.Args[2]]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testwait.SetTestParallelism(8)
	m.Run()
}

// runCrashProgram runs a colly program on a wrapped collector with its state in dir.
func runCrashProgram(addr, dir string, program func(*collyfetch.Crawl) error) error {
	c, err := collyfetch.Wrap(colly.NewCollector(), collyfetch.WrapOptions{
		Agent: "testbot/1.0", Contact: "https://bot.test/", StateDir: dir,
		Policy:      politeness.Policy{Delay: 20 * time.Millisecond},
		FetchConfig: httpfetch.Config{ConnectToRules: []string{"::" + addr}, AllowPrivate: true}})
	if err != nil {
		return err
	}
	return errors.Join(program(c), c.Close())
}

// followChain prints the title of each page, and the context value that came with its link.
func followChain(c *collyfetch.Crawl) error {
	c.OnHTML("h1", func(e *colly.HTMLElement) { fmt.Println(e.Text, e.Request.Ctx.Get("label")) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		e.Request.Ctx.Put("label", e.Text)
		if err := e.Request.Visit(e.Attr("href")); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	return c.Visit("http://a.test/0")
}

// TestKilled: a program that is killed and restarted loses no page and no context, and the server
// sees a polite crawl throughout.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs in processes of its own")
	}
	const pages = 25
	web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
		var n int
		fmt.Sscanf(r.Path, "/%d", &n)
		body := fmt.Sprintf("<h1>Page %d</h1>", n)
		if n+1 < pages {
			body += fmt.Sprintf("<a href=/%d>label %d</a>", n+1, n+1)
		}
		return crawltest.HTML(body)
	}})
	server, err := web.Start("")
	must(t, err)
	defer server.Close()
	self, err := os.Executable()
	must(t, err)
	dir, seen := filepath.Join(t.TempDir(), "state"), map[string]bool{}
	start := func(until int) {
		c := exec.Command(self, dir, "chain")
		c.Env, c.Stderr = append(os.Environ(), programEnv+"="+server.Addr), os.Stderr
		out, err := c.StdoutPipe()
		must(t, err)
		must(t, c.Start())
		lines := 0
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			seen[scanner.Text()] = true
			if lines++; lines == until {
				must(t, c.Process.Kill())
			}
		}
		if err := c.Wait(); (err != nil) != (until > 0) {
			t.Errorf("the program ended with %v", err)
		}
		must(t, server.AwaitDisconnects(t.Context()))
	}
	start(8)
	restart := time.Now()
	start(0)
	for n := range pages {
		want := fmt.Sprintf("Page %d label %d", n, n)
		if n == 0 {
			want = "Page 0 "
		}
		if !seen[want] {
			t.Errorf("%q was not scraped", want)
		}
	}
	if len(seen) != pages {
		t.Errorf("%d lines were printed, want %d: %q", len(seen), pages, slices.Sorted(maps.Keys(seen)))
	}
	report := web.Judge(crawltest.JudgeOptions{RequiredProductToken: "testbot", MinDelay: 20 * time.Millisecond,
		RestartTimes: []time.Time{restart}, CrashLossWindow: time.Second})
	if !report.OK() {
		t.Errorf("the judge found:\n%v", report)
	}
}
