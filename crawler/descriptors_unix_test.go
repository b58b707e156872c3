//go:build unix

package crawler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// noDescriptorsEnv names the environment variable that makes this test process the crawl of
// TestNoDescriptors. Its value is the address of the server.
const noDescriptorsEnv = "CRAWLER_TEST_DESCRIPTORS"

// A starvedCrawl is what a crawl without file descriptors reports.
type starvedCrawl struct {
	Stats  crawler.Stats
	Closed []string // origins whose robots.txt could not be fetched
	Error  string   // error of Run
}

// TestNoDescriptors: while a process has no file descriptors left, no host is closed and no page is
// lost; once it has some again, all pages are visited.
func TestNoDescriptors(t *testing.T) {
	const hosts, pages = 12, 1
	if server := os.Getenv(noDescriptorsEnv); server != "" {
		if err := json.NewEncoder(os.Stdout).Encode(crawlWithoutDescriptors(t, server, hosts, pages)); err != nil {
			t.Fatal(err)
		}
		os.Exit(0)
	}
	web, seeds := manyHosts(hosts, pages)
	server, err := web.Start("")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, self, "-test.run=^TestNoDescriptors$")
	c.Env, c.Stderr = append(os.Environ(), noDescriptorsEnv+"="+server.Addr), os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got starvedCrawl
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkVisitedOnce(t, web, seeds)
	st := got.Stats
	charged := st.Errors + st.Retries + int64(len(got.Closed))
	if got.Error != "" || st.Pages != hosts*pages || st.LocalFaults == 0 || charged != 0 {
		t.Errorf("the crawl ended with %q, %d of %d pages, %d errors, %d retries, %d local failures, and closed %v",
			got.Error, st.Pages, hosts*pages, st.Errors, st.Retries, st.LocalFaults, got.Closed)
	}
}

// crawlWithoutDescriptors crawls, and takes all file descriptors of the process until the crawl has
// paused because of that.
func crawlWithoutDescriptors(t *testing.T, server string, hosts, pages int) (got starvedCrawl) {
	var seeds []string
	for host := range hosts {
		for page := range pages {
			seeds = append(seeds, fmt.Sprintf("http://site%d.test/%d", host, page))
		}
	}
	c := newCrawl(t, crawltest.New(), memory.New(memory.Config{}), seeds...)
	c.Policy.Delay, c.Policy.AdaptiveFactor = politeness.NoDelay, -1
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: "testbot/1.0 (+https://bot.test/)",
		ConnectToRules: []string{"::" + server}, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Fetcher = fetcher
	var mu sync.Mutex // guards got.Closed
	c.Hooks.RobotsFetched = func(l gate.RecordFetchResult) {
		mu.Lock()
		defer mu.Unlock()
		if !l.HasRulesInForce {
			got.Closed = append(got.Closed, l.Origin.String())
		}
	}
	taken := takeDescriptors(t)
	done := make(chan error)
	go func() { done <- c.Run(t.Context()) }()
	for c.Stats().MachinePauseReason == "" && c.Stats().Errors == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, f := range taken {
		f.Close()
	}
	if err := <-done; err != nil {
		got.Error = err.Error()
	}
	got.Stats = c.Stats()
	return got
}

// takeDescriptors opens files until the process may open no more.
func takeDescriptors(t *testing.T) (taken []*os.File) {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			return taken
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
}
