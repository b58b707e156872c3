package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/bench/internal/web"
)

// TestMain makes the test binary run as the child processes that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		main()
	}
	os.Exit(m.Run())
}

// TestRun: the program prints figures of every crawler that is installed, for a small web on one
// host and for one on 15. The program itself checks that every page is visited, and by decorum only
// once.
func TestRun(t *testing.T) {
	for _, w := range []workload{{Hosts: 1, Pages: 100}, {Hosts: 15, Pages: 4}} {
		var out bytes.Buffer
		if err := benchmarkCrawlers(childProcessTask{Web: w, Workers: 4, Dir: t.TempDir(), Profile: t.TempDir()},
			crawlers(), workload{}, 1, &out); err != nil {
			t.Fatalf("%+v: %v", w, err)
		}
		for _, c := range crawlers() {
			if c.command != nil {
				if _, err := c.command(childProcessTask{}); errors.Is(err, errNotInstalled) {
					continue
				}
			}
			if !regexp.MustCompile(`(?m)^ *` + c.name + ` .*\d\.\d\d\d +\d+\.\d `).MatchString(out.String()) {
				t.Errorf("%+v: no figures of %s in\n%s", w, c.name, &out)
			}
		}
	}
}

// TestSelectCrawlers: an unknown name is an error and not a missing row.
func TestSelectCrawlers(t *testing.T) {
	some, err := selectCrawlers("decorum,tokenizer loop")
	if err != nil || len(some) != 2 || some[1].name != "tokenizer loop" {
		t.Errorf("selectCrawlers returns %d crawlers, %v", len(some), err)
	}
	if _, err := selectCrawlers("decorum,curl"); err == nil {
		t.Error("no error for an unknown crawler")
	}
}

// TestCheck: the figures of a crawler that misses pages or requests others are refused.
func TestCheck(t *testing.T) {
	w, c := workload{Hosts: 2, Pages: 5}, crawler{name: "decorum"}
	if err := c.checkRequests(w, requestCounts{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 2}); err != nil {
		t.Error(err)
	}
	slow := requestCounts{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 2, ShortGaps: 1}
	if err := c.checkRequests(w, slow); err != nil {
		t.Error(err)
	}
	c.pauses = true
	if err := c.checkRequests(w, slow); err == nil {
		t.Error("a crawl with a short gap counts as polite")
	}
	for _, wrong := range []requestCounts{
		{PageRequests: 9, Distinct: 9, HostsAskedForRobots: 2},
		{PageRequests: 11, Distinct: 10, HostsAskedForRobots: 2},
		{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 1},
		{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 2, NonexistentPages: 1},
	} {
		if err := c.checkRequests(w, wrong); err == nil {
			t.Errorf("%+v counts as a complete crawl", wrong)
		}
	}
}

// TestPages: the pages have the size and the numbers of links and elements that comments state.
func TestPages(t *testing.T) {
	for _, w := range []workload{workloads()["W1"], workloads()["W2"]} {
		for _, page := range []int{0, 1, w.Pages - 1} {
			body := w.pageHTML(w.Hosts-1, page)
			if len(body) != pageBytes {
				t.Errorf("%+v: page %d has %d bytes, want %d", w, page, len(body), pageBytes)
			}
			if n := strings.Count(body, "<a "); n != linksPerPage {
				t.Errorf("%+v: page %d has %d links, want %d", w, page, n, linksPerPage)
			}
			if n := len(regexp.MustCompile(`<[a-z]`).FindAllString(body, -1)); n < 350 || n > 390 {
				t.Errorf("%+v: page %d has %d elements, want about 370", w, page, n)
			}
			if got, ok := w.pageNumber(web.PagePath(page)); !ok || got != page {
				t.Errorf("%s is page %d, want %d", web.PagePath(page), got, page)
			}
		}
	}
}
