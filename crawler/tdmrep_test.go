package crawler_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

const tdmrepPath = "/.well-known/tdmrep.json"

// tdmrepSite returns a site with pages and a tdmrep.json.
func tdmrepSite(file crawltest.PageFunc, robots string) crawltest.Site {
	page := pageWithHeader("<a href=/>x</a><a href=/a>x</a><a href=/b>x</a><a href=/closed/c>x</a><a href=/d>x</a>")
	return crawltest.Site{Host: "a.test", Fallback: page, MaxConcurrency: 4,
		Pages:  map[string]crawltest.PageFunc{tdmrepPath: file},
		Robots: robotsText("User-agent: *\n"+robots, 0, nil)}
}

// requestedPaths returns the requested paths, in order.
func requestedPaths(web *crawltest.Web) (paths []string) {
	for _, x := range web.Log() {
		paths = append(paths, strings.TrimPrefix(x.URL, "http://a.test"))
	}
	return paths
}

func jsonFile(text string) crawltest.PageFunc {
	return crawltest.StaticPage(crawltest.ResponseOfType("application/json", text))
}

// TestTDMRep: a crawl that mines text reads the tdmrep.json of an origin once, after its robots.txt
// and before its pages, with any number of workers, and obeys it.
func TestTDMRep(t *testing.T) {
	const closed = `[{"location": "/closed/", "tdm-reservation": 1}]`
	all := []string{"/", "/a", "/b", "/closed/c", "/d"}
	open := []string{"/", "/a", "/b", "/d"}
	for _, tt := range []struct {
		name     string
		file     crawltest.PageFunc
		robots   string
		purposes []string
		lookups  int
		pages    []string
	}{
		{"closes", jsonFile(closed), "Allow: /", []string{"ai-train"}, 1, open},
		{"for what models read too", jsonFile(closed), "Allow: /", []string{"ai-input"}, 1, open},
		{"is not of search", jsonFile(closed), "Allow: /", []string{"search", "archive"}, 0, all},
		{"no purpose", jsonFile(closed), "Allow: /", nil, 0, all},
		{"there is none", crawltest.StaticPage(crawltest.Status(404)), "Allow: /", []string{"ai-train"}, 1, all},
		{"a page in its place", pageWithHeader("<p>not found</p>"), "Allow: /", []string{"ai-train"}, 1, all},
		{"led elsewhere", crawltest.StaticPage(crawltest.Redirect(301, "/x")), "Allow: /",
			[]string{"ai-train"}, 1, all},
		{"half of one", jsonFile(`[{"location": "/closed/", "tdm-reservation": 1}, {"loc`), "Allow: /",
			[]string{"ai-train"}, 1, open},
		{"robots.txt opens a part of the site to the use", jsonFile(closed),
			"Content-Usage: / train-ai=n\nContent-Usage: /a train-ai=y\nContent-Usage: /closed/ train-ai=y\nAllow: /",
			[]string{"ai-train"}, 1, []string{"/a"}},
		{"not to be read", jsonFile(closed), "Disallow: /.well-known", []string{"ai-train"}, 0, all},
		{"fails on", crawltest.StaticPage(crawltest.Status(503)), "Allow: /", []string{"ai-train"}, 3, all},
		{"fails once", pageFailingFirst(1, closed), "Allow: /", []string{"ai-train"}, 2, open},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(tdmrepSite(tt.file, tt.robots))
				c := newPurposeCrawl(t, web, newMemoryStore(), tt.purposes, "http://a.test/", "http://a.test/a",
					"http://a.test/b", "http://a.test/closed/c", "http://a.test/d")
				c.Policy.Concurrency = 4
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := requestedPaths(web)
				want := append([]string{"/robots.txt"}, slices.Repeat([]string{tdmrepPath}, tt.lookups)...)
				if before := got[:min(len(want), len(got))]; !slices.Equal(before, want) {
					t.Errorf("asked %q before pages, want %q", before, want)
				}
				pages := slices.DeleteFunc(got, func(p string) bool {
					return p == "/robots.txt" || p == tdmrepPath || p == "/x"
				})
				if slices.Sort(pages); !slices.Equal(pages, tt.pages) {
					t.Errorf("pages %q, want %q", pages, tt.pages)
				}
				if s := c.Stats(); s.BlockedURLs != int64(len(all)-len(tt.pages)) ||
					s.TDMRepFetches != int64(tt.lookups) || s.Pages != int64(len(tt.pages)) || s.SitemapFetches != 0 {
					t.Errorf("%+v", s)
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}

// pageFailingFirst returns a page that fails the first times, then has a text.
func pageFailingFirst(times int, text string) crawltest.PageFunc {
	return func(r crawltest.PageRequest) crawltest.Response {
		if r.NthForURL <= times {
			return crawltest.Response{Fault: crawltest.Reset}
		}
		return crawltest.ResponseOfType("application/json", text)
	}
}

// TestTDMRepOfASlowHost: if a host rests for longer than its robots.txt and its tdmrep.json are
// valid, pages are visited all the same, each after both files were fetched again.
func TestTDMRepOfASlowHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		ttl  time.Duration // of the tdmrep.json
		want []string
	}{
		{"robots.txt is short-lived", 24 * time.Hour,
			[]string{"/robots.txt", tdmrepPath, "/robots.txt", "/1", "/robots.txt", "/2", "/robots.txt", "/3"}},
		{"both are", time.Minute, []string{"/robots.txt", tdmrepPath, "/robots.txt", "/1", "/robots.txt", tdmrepPath,
			"/robots.txt", "/2", "/robots.txt", tdmrepPath, "/robots.txt", "/3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const text = "User-agent: *\nCrawl-delay: 90\nAllow: /\n"
				robots := crawltest.Text(text)
				robots.Header.Set("Cache-Control", "max-age=60")
				web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithHeader("x"),
					Pages: map[string]crawltest.PageFunc{tdmrepPath: jsonFile("[]")},
					Robots: crawltest.StaticRobots(crawltest.RobotsSpec{Response: robots,
						CrawlDelay: 90 * time.Second})})
				c := newPurposeCrawl(t, web, newMemoryStore(), []string{"ai-train"}, "http://a.test/1",
					"http://a.test/2", "http://a.test/3")
				c.Settings.TDMRepTTL = tt.ttl
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := c.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if got := requestedPaths(web); !slices.Equal(got, tt.want) {
					t.Errorf("asked %q, want %q", got, tt.want)
				}
				if gap := minHostGap(web.Log(), "a.test"); gap < 90*time.Second {
					t.Errorf("it rested for %v", gap)
				}
			})
		})
	}
}

// TestTDMRepChanges: a file is valid for a day, over restarts. A later one allows what the first
// reserved, and reserves what it allowed. One that fails later stays in force.
func TestTDMRepChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		file := func(r crawltest.PageRequest) crawltest.Response {
			days := r.ReceivedAt.Sub(begin) / (24 * time.Hour)
			if days > 2 {
				return crawltest.Status(http.StatusBadGateway)
			}
			return crawltest.ResponseOfType("application/json",
				fmt.Sprintf(`[{"location": "/%d", "tdm-reservation": 1}]`, days))
		}
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithHeader("x"),
			Pages:  map[string]crawltest.PageFunc{tdmrepPath: file},
			Robots: robotsText("User-agent: *\nAllow: /\n", 0, nil)})
		store := newMemoryStore()
		past := 0
		for _, run := range []struct {
			after time.Duration
			seeds []string
			asks  []string
		}{
			{0, []string{"/0a", "/1a"}, []string{"/robots.txt", tdmrepPath, "/1a"}},
			{time.Hour, []string{"/0b", "/2a"}, []string{"/2a"}},
			{25 * time.Hour, []string{"/1b", "/0c"}, []string{"/robots.txt", tdmrepPath, "/0a", "/0b", "/0c"}},
			{49 * time.Hour, []string{"/2b"}, []string{"/robots.txt", tdmrepPath, "/1b"}},
			{73 * time.Hour, []string{"/2c", "/3"}, []string{"/robots.txt", tdmrepPath, tdmrepPath, tdmrepPath, "/3"}},
			{74 * time.Hour, []string{"/2d", "/4"}, []string{"/4"}},
		} {
			time.Sleep(time.Until(begin.Add(run.after)))
			var seeds []string
			for _, s := range run.seeds {
				seeds = append(seeds, "http://a.test"+s)
			}
			c := newPurposeCrawl(t, web, store, []string{"ai-train"}, seeds...)
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := requestedPaths(web)[past:]
			past += len(got)
			if pages := slices.IndexFunc(got, func(p string) bool {
				return p != "/robots.txt" && p != tdmrepPath
			}); pages >= 0 {
				slices.Sort(got[pages:])
			}
			if !slices.Equal(got, run.asks) {
				t.Fatalf("after %v: asked %q, want %q", run.after, got, run.asks)
			}
		}
	})
}

// TestTDMRepOfSeveralCrawls: processes that share a crawl share the files: each origin is asked
// once a day, however many processes there are.
func TestTDMRepOfSeveralCrawls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithHeader("x"),
			Pages: map[string]crawltest.PageFunc{tdmrepPath: jsonFile("[]")}})
		store := newMemoryStore()
		var seeds []string
		for i := range 50 {
			seeds = append(seeds, fmt.Sprintf("http://a.test/%d", i))
		}
		done := make(chan error)
		for range 3 {
			c := newPurposeCrawl(t, web, store, []string{"ai-train"}, seeds...)
			c.Policy.Delay = time.Hour
			go func() { done <- c.Run(t.Context()) }()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		lookups := 0
		for _, p := range requestedPaths(web) {
			if p == tdmrepPath {
				lookups++
			}
		}
		if lookups != 3 {
			t.Errorf("its tdmrep.json was requested %d times in 50 hours, want 3", lookups)
		}
	})
}
