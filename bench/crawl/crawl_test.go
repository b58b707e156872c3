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

// TestMain lets the test binary be the processes that the program starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		main()
	}
	os.Exit(m.Run())
}

// TestRun runs the whole program on a small web of each shape, with wget2 where it is
// installed. That every page is visited, and by decorum once, is checked by the
// program itself.
func TestRun(t *testing.T) {
	for _, w := range []webSize{{Hosts: 1, Pages: 100}, {Hosts: 15, Pages: 4}} {
		var out bytes.Buffer
		if err := benchmarkCrawlers(childProcessTask{Web: w, Workers: 4, Dir: t.TempDir(), Profile: t.TempDir()}, crawlers(), 1, &out); err != nil {
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

// TestSelectCrawlers pins that a name that is none is no row less.
func TestSelectCrawlers(t *testing.T) {
	some, err := selectCrawlers("decorum,tokenizer loop")
	if err != nil || len(some) != 2 || some[1].name != "tokenizer loop" {
		t.Errorf("chosen returns %d crawlers, %v", len(some), err)
	}
	if _, err := selectCrawlers("decorum,curl"); err == nil {
		t.Error("a crawler is chosen that there is not")
	}
}

// TestCheck pins that a crawler that does something else is not measured.
func TestCheck(t *testing.T) {
	w, c := webSize{Hosts: 2, Pages: 5}, crawler{name: "decorum"}
	if err := c.checkRequests(w, requestCounts{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 2}); err != nil {
		t.Error(err)
	}
	for _, wrong := range []requestCounts{
		{PageRequests: 9, Distinct: 9, HostsAskedForRobots: 2},
		{PageRequests: 11, Distinct: 10, HostsAskedForRobots: 2},
		{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 1},
		{PageRequests: 10, Distinct: 10, HostsAskedForRobots: 2, NonexistentPages: 1},
	} {
		if err := c.checkRequests(w, wrong); err == nil {
			t.Errorf("%+v is taken for a whole crawl", wrong)
		}
	}
}

// TestPages pins what the comment of the program says of the pages.
func TestPages(t *testing.T) {
	for _, w := range []webSize{{Hosts: 1, Pages: 10_000}, {Hosts: 200, Pages: 100}} {
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
