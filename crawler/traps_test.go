package crawler_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// newScopedCrawl returns a crawl of web with a scope, in the year 2000 of bubbles.
func newScopedCrawl(t *testing.T, web *crawltest.Web, store storage.Store, cfg frontier.ScopeConfig,
	seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newCrawl(t, web, store)
	cfg.CurrentYear = time.Now().Year()
	roots := make([]decorum.URL, len(seeds))
	for i, s := range seeds {
		var err error
		if roots[i], err = decorum.ParseURL(s); err != nil {
			t.Fatal(err)
		}
	}
	c.Frontier = frontier.New(store, frontier.Config{Scope: frontier.NewScope(cfg, roots), CleanURL: c.Gate.CleanURL})
	addSeeds(t, c, seeds...)
	return c
}

// countProductRequests counts the requests for each product of a shop, whatever other parameters
// the URL has: before and after the crawl fetched the robots.txt that is in force since a given
// time.
func countProductRequests(web *crawltest.Web, since time.Time) (before, after map[string]int) {
	item := regexp.MustCompile(`[?&](item=\d+)`)
	before, after = map[string]int{}, map[string]int{}
	counts := before
	for _, x := range web.Log() {
		if strings.HasSuffix(x.URL, "/robots.txt") && !x.Start.Before(since) {
			counts = after
		}
		if m := item.FindStringSubmatch(x.URL); m != nil {
			counts[m[1]]++
		}
	}
	return before, after
}

// TestNoisyShop: a shop that adds ?ref= and ?sid= to every link, and declares by Clean-param that
// they do not matter, has each product visited once, whether robots.txt says so before the URLs are
// discovered, after a part of them, or after all.
func TestNoisyShop(t *testing.T) {
	const items, noise, clean = 40, 5, "User-agent: *\nClean-param: ref&sid\nCrawl-delay: 10\n"
	for _, tt := range []struct {
		name     string
		ruleFrom time.Duration // when the rule is in robots.txt
		from     string        // the seed: "" for the home page, or everything
	}{
		{"before discovery", 0, ""},
		{"during discovery", 30 * time.Hour, ""},
		{"after discovery", 0, "all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ruleFrom := time.Now().Add(tt.ruleFrom)
				link := func(i, n int) string { return fmt.Sprintf("/shop?ref=r%d&item=%d&sid=%d", n, i, i*noise+n) }
				shop := func(r crawltest.PageRequest) crawltest.Response {
					var b strings.Builder
					for i := range items {
						fmt.Fprintf(&b, "<a href='%s'>x</a>", link(i, len(r.Path)*7%noise))
					}
					return crawltest.HTML(b.String())
				}
				web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: shop,
					Robots: func(at time.Time) crawltest.RobotsSpec {
						if at.Before(ruleFrom) {
							return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nCrawl-delay: 1800\n"),
								CrawlDelay: 30 * time.Minute}
						}
						return crawltest.RobotsSpec{Response: crawltest.Text(clean), CrawlDelay: 10 * time.Second,
							RemoveCleanParams: func(path string) string {
								return regexp.MustCompile(`\?ref=r\d+&(item=\d+)&sid=\d+$`).ReplaceAllString(path,
									"?$1")
							}}
					}})
				seeds := []string{"http://a.test/"}
				if tt.from == "all" {
					for i := range items {
						for n := range noise {
							seeds = append(seeds, "http://a.test"+link(i, n))
						}
					}
				}
				runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, seeds...))
				before, after := countProductRequests(web, ruleFrom)
				for i := range items {
					item := fmt.Sprintf("item=%d", i)
					// A product visited before may have used up its last noisy URL.
					if n := after[item]; n != 1 && (n != 0 || before[item] == 0) {
						t.Errorf("%s was requested %d times, and %d times before the rule was known", item, n,
							before[item])
					}
				}
				if (tt.ruleFrom > 0) != (len(before) > 0) || len(after) == 0 {
					t.Errorf("%d products were visited before the rule was known, %d after", len(before), len(after))
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}

// TestTrapsEndByThemselves: an endless calendar, endless sessions, endless paths and a maze of
// redirects each end within their limit, for the named reason, and cause no other URL to be lost.
func TestTrapsEndByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pattern, maxRedirects = 30, 5
		number := func(path string) int {
			n, _ := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(path))
			return n
		}
		page := func(links ...string) crawltest.Response { return pageWithLinks(links...)(crawltest.PageRequest{}) }
		session := func(r crawltest.PageRequest) string {
			return fmt.Sprintf(";jsessionid=%016X", r.ReceivedAt.UnixNano())
		}
		web := crawltest.New(
			crawltest.Site{Host: "events.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				var y, m, d int
				if _, err := fmt.Sscanf(r.Path, "/%d/%d/%d", &y, &m, &d); err != nil {
					return page("/2000/1/1", "/about")
				}
				next := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).AddDate(1, 0, 0)
				return page(next.Format("/2006/1/2"), "/about")
			}},
			crawltest.Site{Host: "days.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				return page(fmt.Sprintf("/day/%d", number(r.Path)+1),
					fmt.Sprintf("/day/%d", number(r.Path)+2), "/about")
			}},
			crawltest.Site{Host: "session.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				return page("/"+session(r), "/a"+session(r), "/b"+session(r)+"?x=1")
			}},
			crawltest.Site{Host: "query.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				id := fmt.Sprintf("PHPSESSID=%016x", r.ReceivedAt.UnixNano())
				return page("/?"+id, "/a?"+id, "/b?x=1&"+id)
			}},
			crawltest.Site{Host: "token.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				return page(fmt.Sprintf("/s/%032x/home", r.ReceivedAt.UnixNano()), "/about")
			}},
			crawltest.Site{Host: "deeper.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				return page(r.Path+"b/c/", "/about/")
			}},
			crawltest.Site{Host: "maze.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
				if r.Path == "/" {
					return page("/room/1", "/about")
				}
				if strings.HasPrefix(r.Path, "/room") {
					return crawltest.Redirect(http.StatusFound, fmt.Sprintf("/room/%d", number(r.Path)+1))
				}
				return page()
			}},
		)
		hosts := []string{"events.test", "days.test", "session.test", "query.test", "token.test",
			"deeper.test", "maze.test"}
		var seeds []string
		for _, h := range hosts {
			seeds = append(seeds, "http://"+h+"/")
		}
		store := newMemoryStore()
		c := newScopedCrawl(t, web, store, frontier.ScopeConfig{MaxURLsPerPattern: pattern, MaxRedirects: maxRedirects,
			MaxDepth: 10_000}, seeds...)
		runCrawl(t, c)
		visits := map[string]int{}
		for _, x := range web.Log() {
			host := strings.Split(x.URL, "/")[2]
			if !strings.HasSuffix(x.URL, "/robots.txt") {
				visits[host]++
			}
			if strings.Contains(x.URL, "jsessionid") || strings.Contains(x.URL, "PHPSESSID") {
				t.Errorf("%s has a session id", x.URL)
			}
		}
		// Beside the trap each has a home page and, except session.test and query.test, "about".
		for host, want := range map[string]int{
			"events.test": 2 + 11, "days.test": 2 + pattern, "session.test": 3, "query.test": 3,
			"token.test":  2 + pattern,
			"maze.test":   2 + 1 + maxRedirects,
			"deeper.test": 2 * (1 + 3), // b/c three times, also below /about
		} {
			if visits[host] != want {
				t.Errorf("%s was visited %d times, want %d", host, visits[host], want)
			}
		}
		if s := c.Stats(); s.Redirects != maxRedirects+1 || s.RedirectsToNewURLs != maxRedirects {
			t.Errorf("%d redirects, %d to new URLs; want %d and %d", s.Redirects, s.RedirectsToNewURLs,
				maxRedirects+1, maxRedirects)
		}
		refusals, err := frontier.LoadRefusalCounts(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		reasons := map[string]frontier.RefusalReason{}
		for _, r := range refusals {
			reasons[r.Host] += r.Reason
		}
		for host, want := range map[string]frontier.RefusalReason{"events.test": "calendar",
			"days.test":  "pattern_urls",
			"token.test": "pattern_urls", "deeper.test": "path_repeat", "maze.test": "redirects", "session.test": "",
			"query.test": ""} {
			if reasons[host] != want {
				t.Errorf("%s: refused for %q, want %q", host, reasons[host], want)
			}
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestSessionsFallBack: if a server restores the session ID by a redirect, its page is visited once
// under the URL it was found as, and no more.
func TestSessionsFallBack(t *testing.T) {
	for _, name := range []string{";jsessionid=", "?PHPSESSID="} {
		synctest.Test(t, func(t *testing.T) {
			answer := func(r crawltest.PageRequest) crawltest.Response {
				id := fmt.Sprintf("%s%X", name, r.ReceivedAt.UnixNano())
				if !strings.Contains(r.Path, name) {
					return crawltest.Redirect(http.StatusFound, r.Path+id)
				}
				return crawltest.HTML("<a href='/p" + id + "'>p</a>")
			}
			web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: answer})
			runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/p"+name+"1"))
			if got, want := strings.Join(requestedPages(web), " "), "/p /p"+name+"1"; got != want {
				t.Errorf("requested %s, want %s", got, want)
			}
		})
	}
}

// TestRedirectLoops: redirect loops end by the seen set, and are counted.
func TestRedirectLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			switch r.Path {
			case "/self": // the site wants a cookie
				return crawltest.Redirect(http.StatusFound, "/self")
			case "/one":
				return crawltest.Redirect(http.StatusFound, "/two")
			case "/two":
				return crawltest.Redirect(http.StatusFound, "/three")
			case "/three":
				return crawltest.Redirect(http.StatusFound, "/one")
			}
			return crawltest.HTML("page")
		}})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/self", "http://a.test/one")
		runCrawl(t, c)
		if got := requestedPages(web); len(got) != 4 {
			t.Errorf("requested %q", got)
		}
		if s := c.Stats(); s.Redirects != 4 || s.RedirectsToNewURLs != 2 {
			t.Errorf("%d redirects, %d to new URLs; want 4 and 2", s.Redirects, s.RedirectsToNewURLs)
		}
	})
}

// TestRedirectsRefused: a redirect to a URL beyond a limit does not count as one to a new URL.
func TestRedirectsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			return crawltest.Redirect(http.StatusFound, r.Path+"x")
		}})
		c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{MaxURLsPerHost: 3}, "http://a.test/")
		runCrawl(t, c)
		if s := c.Stats(); s.Redirects != 3 || s.RedirectsToNewURLs != 2 {
			t.Errorf("%d redirects, %d to new URLs; want 3 and 2", s.Redirects, s.RedirectsToNewURLs)
		}
	})
}

// TestSessionInEveryPath: on a site that requires a session ID in every URL, and redirects to one,
// each page is visited under the first such URL.
func TestSessionInEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sessions := 0
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: func(r crawltest.PageRequest) crawltest.Response {
			id, page, ok := strings.Cut(r.Path, "))/")
			if !ok {
				sessions++
				return crawltest.Redirect(http.StatusFound, fmt.Sprintf("/(S(%d))%s", sessions, r.Path))
			}
			n, _ := strconv.Atoi(page)
			return crawltest.HTML(fmt.Sprintf("<a href='%s))/%d'>next</a>", id, min(n+1, 5)))
		}})
		runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{}, "http://a.test/"))
		pages := map[string]int{}
		for _, path := range requestedPages(web) {
			if _, page, ok := strings.Cut(path, "))/"); ok {
				pages[page]++
			}
		}
		for _, page := range []string{"", "1", "2", "3", "4", "5"} {
			if pages[page] != 1 {
				t.Errorf("page %q was visited %d times", page, pages[page])
			}
		}
	})
}
