package crawler_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// relativeLinkTrap is a site that answers every URL below /a/ with one page, whose relative links lead
// to ever new URLs. Its other pages differ.
func relativeLinkTrap() crawltest.Site {
	return crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
		switch {
		case strings.HasPrefix(r.Path, "/a/"):
			return crawltest.HTML("<a href=b/><a href=c/><a href=d/><a href=e/>")
		case r.Path == "/":
			return pageWithLinks("/a/", "/page1")(r)
		}
		var n int
		fmt.Sscanf(r.Path, "/page%d", &n)
		if n == 200 {
			return crawltest.HTML("the last page")
		}
		return crawltest.HTML(fmt.Sprintf("page %d <a href=/page%d>next</a>", n, n+1))
	}}
}

// TestPagesThatRepeatOthers: the links of pages with the body of another page of their host end at
// MaxDuplicateLinksPerHost, in all runs together, or when their pattern is closed. Every other page is
// visited.
func TestPagesThatRepeatOthers(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		maxLinks, maxPerPattern int
		runs                    int
		minTrapped, maxTrapped  int // visits below /a/
		reason                  frontier.RefusalReason
	}{
		// The links of the first page of each run count as those of a new page.
		{"budget", 50, 1 << 30, 1, 50, 56, frontier.DuplicateLinks},
		{"budget in two runs", 50, 1 << 30, 2, 50, 61, frontier.DuplicateLinks},
		{"pattern", 1 << 30, 30, 1, 30, 40, frontier.DuplicatePattern},
		{"pattern in two runs", 1 << 30, 30, 2, 30, 40, frontier.DuplicatePattern},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, store := crawltest.New(relativeLinkTrap()), newMemoryStore()
				for run := range tt.runs {
					c := newScopedCrawl(t, web, store,
						frontier.ScopeConfig{MaxDuplicatesPerPattern: tt.maxPerPattern,
							MaxDepth: 1000, MaxPathRepeats: 100},
						"http://a.test/", fmt.Sprintf("http://a.test/a/start%d/", run))
					c.Settings.MaxDuplicateLinksPerHost = tt.maxLinks
					runCrawl(t, c)
				}
				trapped := 0
				for _, page := range requestedPages(web) {
					if strings.HasPrefix(page, "/a/") {
						trapped++
					}
				}
				if trapped < tt.minTrapped || trapped > tt.maxTrapped {
					t.Errorf("%d visits below /a/, want %d to %d", trapped, tt.minTrapped, tt.maxTrapped)
				}
				if n := len(requestedPages(web)) - trapped; n != 1+200 {
					t.Errorf("%d other pages were visited, want 201", n)
				}
				counts, err := frontier.LoadRefusalCounts(t.Context(), store)
				if err != nil {
					t.Fatal(err)
				}
				if len(counts) == 0 || counts[0].Reason != tt.reason {
					t.Errorf("refused: %+v, want the reason %s first", counts, tt.reason)
				}
			})
		})
	}
}

// TestMirroredTree: a directory that repeats the pages of another one is closed, though each of its
// index pages differs, and the report can name it. The other directory is visited whole.
func TestMirroredTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			_, inTree, isTree := strings.Cut(r.Path[1:], "/")
			switch {
			case r.Path == "/":
				return pageWithLinks("/doc/", "/mirror/")(r)
			case !isTree:
				return crawltest.Status(404)
			case strings.Contains(inTree, "file"):
				return crawltest.HTML("the same file in both: " + inTree)
			}
			links := "Index of " + r.Path
			for i := range 20 {
				links += fmt.Sprintf("<a href=file%d>", i)
				if inTree == "" {
					links += fmt.Sprintf("<a href=dir%d/>", i)
				}
			}
			return crawltest.HTML(links)
		}})
		store := newMemoryStore()
		c := newScopedCrawl(t, web, store, frontier.ScopeConfig{MaxDuplicatesPerPattern: 60}, "http://a.test/")
		runCrawl(t, c)
		visits := map[string]int{}
		for _, page := range requestedPages(web) {
			dir, _, _ := strings.Cut(page[1:], "/")
			visits[dir]++
		}
		const tree = 1 + 20 + 21*20 // indexes and files
		if visits["doc"]+visits["mirror"] > tree+150 || max(visits["doc"], visits["mirror"]) != tree {
			t.Errorf("visits by directory: %v, want %d of one, and at most 150 of the other", visits, tree)
		}
		closed, err := frontier.LoadClosedPatterns(t.Context(), store)
		if err != nil || len(closed.List("a.test")) == 0 {
			t.Errorf("closed patterns: %v, %v; want one", closed.List(""), err)
		}
	})
}

// TestLinksOfDuplicatesComeLast: the links of a page that repeats another are visited after all other
// links of the host.
func TestLinksOfDuplicatesComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
			"/":       pageWithLinks("/one/", "/two/", "/other"),
			"/one/":   crawltest.StaticPage(crawltest.HTML("<a href=x>")),
			"/two/":   crawltest.StaticPage(crawltest.HTML("<a href=x>")),
			"/one/x":  crawltest.StaticPage(crawltest.HTML("x of one")),
			"/two/x":  crawltest.StaticPage(crawltest.HTML("x of two")),
			"/other":  pageWithLinks("/deep"),
			"/deep":   pageWithLinks("/deeper"),
			"/deeper": crawltest.StaticPage(crawltest.HTML("deeper")),
		}})
		runCrawl(t, newCrawl(t, web, newMemoryStore(), "http://a.test/"))
		wantLines(t, requestedPages(web), "/", "/one/", "/two/", "/other", "/one/x", "/deep", "/deeper", "/two/x")
	})
}

// TestNamedURLsOfClosedPatterns: URLs of seeds are visited though their pattern is closed.
func TestNamedURLsOfClosedPatterns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("same"))})
		var seeds []string
		for i := range 20 {
			seeds = append(seeds, fmt.Sprintf("http://a.test/p/%d", i))
		}
		store := newMemoryStore()
		c := newScopedCrawl(t, web, store, frontier.ScopeConfig{MaxDuplicatesPerPattern: 5}, seeds...)
		runCrawl(t, c)
		if n := len(requestedPages(web)); n != len(seeds) {
			t.Errorf("%d visits, want %d", n, len(seeds))
		}
		link := storage.Entry{URL: parseURL(t, "http://a.test/p/99"), Source: storage.SourceLink}
		if err := c.Frontier.CheckScope(link); frontier.RefusalReasonOf(err) != frontier.DuplicatePattern {
			t.Errorf("a link: %v, want it refused", err)
		}
	})
}
