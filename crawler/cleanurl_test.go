package crawler_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// crawlCleaning crawls a.test from the given paths, and returns the paths that it requested. If
// early is set, links are also cleaned when they are discovered, by the rules known then.
func crawlCleaning(t *testing.T, site crawltest.Site, early bool, paths ...string) []string {
	t.Helper()
	site.Host = "a.test"
	web := crawltest.New(site)
	store := memory.New(memory.Config{})
	seeds := make([]string, len(paths))
	for i, path := range paths {
		seeds[i] = "http://a.test" + path
	}
	c := newCrawl(t, web, store, seeds...)
	if early {
		c.Frontier = frontier.New(store, frontier.Config{CleanURL: c.Gate.CleanURL})
	}
	runCrawl(t, c)
	return requestedPages(web)
}

func runCrawl(t *testing.T, c *crawler.Crawler) {
	t.Helper()
	c.Settings.Workers = 3
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// requestedPages returns the paths requested of a.test, without robots.txt.
func requestedPages(web *crawltest.Web) []string {
	var paths []string
	for _, x := range web.Log() {
		if path := x.URL[len("http://a.test"):]; path != "/robots.txt" {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestCleanParam(t *testing.T) {
	const links = "<a href='/p?b=2&sid=3'>1</a><a href='/p?sid=4&b=2'>2</a><a href='/p?b=3'>3</a>"
	for _, test := range []struct {
		name, robots string
		seeds, want  []string
	}{
		{"CLEAN-03/found before the rules are known", "Clean-param: sid",
			[]string{"/p?sid=1", "/p?sid=2", "/p"}, []string{"/p"}},
		{"CLEAN-06/found after", "Clean-param: sid", []string{"/links"}, []string{"/links", "/p?b=2", "/p?b=3"}},
		{"CLEAN-24", "User-agent: *\nDisallow: /*sid=\nClean-param: sid", []string{"/x?sid=1"}, []string{"/x"}},
		{"CLEAN-24/the clean URL is disallowed", "User-agent: *\nAllow: /*sid=\nDisallow: /x\nClean-param: sid",
			[]string{"/x?sid=1"}, nil},
		{"SMAP-08/errands are as they are named", "Clean-param: sid\nSitemap: http://a.test/map?sid=1", nil, nil},
		{"CLEAN-21/nothing to clean", "Clean-param: sid", []string{"/p?side=1"}, []string{"/p?side=1"}},
	} {
		for _, early := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if test.seeds == nil { // the sitemap, and what it lists
						test.seeds, test.want = []string{"/p?sid=7"}, []string{"/map?sid=1", "/p", "/q"}
					}
					got := crawlCleaning(t, crawltest.Site{
						Robots: robotsText(test.robots, 0, nil),
						Pages: map[string]crawltest.PageFunc{
							"/links": crawltest.StaticPage(crawltest.HTML(links)),
							"/map?sid=1": crawltest.StaticPage(
								crawltest.Text("http://a.test/q?sid=5\nhttp://a.test/p?sid=6\n")),
						},
						Fallback: crawltest.StaticPage(crawltest.HTML("a page"))}, early, test.seeds...)
					slices.Sort(got)
					if !slices.Equal(got, test.want) {
						t.Errorf("requested %q, want %q", got, test.want)
					}
				})
			})
		}
	}
}

// TestCleanParamInAFullHost: a queued URL is not lost if a rule gives it another URL while its host
// already has the most URLs that it may have.
func TestCleanParamInAFullHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := ""
		for i := range 9 {
			links += fmt.Sprintf("<a href='http://b.test/p?sid=%d&item=%d'>p</a>", i, i)
		}
		web := crawltest.New(
			crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML(links))},
			crawltest.Site{Host: "b.test", Robots: robotsText("User-agent: *\nClean-param: sid\n", 0, nil),
				Fallback: crawltest.StaticPage(crawltest.HTML("page"))})
		scope := frontier.ScopeConfig{Mode: frontier.AnyScope, MaxURLsPerHost: 9, MaxURLsPerPattern: 9}
		runCrawl(t, newScopedCrawl(t, web, newMemoryStore(), scope, "http://a.test/"))
		_, times := countRequests(web.Log())
		for i := range 9 {
			if u := fmt.Sprintf("http://b.test/p?item=%d", i); times[u] != 1 {
				t.Errorf("%s was requested %d times", u, times[u])
			}
		}
	})
}

// TestCleanParamFallsBack: if the clean URL does not exist, the URL that was found first is
// visited, and no other (CLEAN-05, CLEAN-23).
func TestCleanParamFallsBack(t *testing.T) {
	const links = "<a href='/p?ref=3&b=1'>1</a><a href='/p?ref=4&b=1'>2</a>"
	found := []string{"/p?ref=1&b=1", "/p?ref=2&b=1"}
	for _, test := range []struct {
		name, robots string
		status       int
		seeds, want  []string
	}{
		{"CLEAN-23/found before the rules are known", "", 404, found, []string{"/p?b=1", "/p?ref=1&b=1"}},
		{"CLEAN-23/found after", "", 410, []string{"/links"}, []string{"/links", "/p?b=1", "/p?ref=3&b=1"}},
		{"CLEAN-24/the fall-back is disallowed", "Disallow: /*ref=", 404, found, []string{"/p?b=1"}},
		{"CLEAN-23/another failure", "", 403, found, []string{"/p?b=1"}},
		{"CLEAN-23/nothing was taken off", "", 404, []string{"/p?b=1"}, []string{"/p?b=1"}},
		{"CLEAN-23/nothing is there either", "", 404, []string{"/gone?ref=1", "/gone?ref=2"},
			[]string{"/gone", "/gone?ref=1"}},
	} {
		for _, early := range []bool{false, true} {
			t.Run(test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					missing := crawltest.StaticPage(crawltest.Status(test.status))
					got := crawlCleaning(t, crawltest.Site{
						Robots: robotsText("User-agent: *\nClean-param: ref\n"+test.robots, 0, nil),
						Pages: map[string]crawltest.PageFunc{"/links": crawltest.StaticPage(crawltest.HTML(links)),
							"/p?b=1": missing, "/gone": missing, "/gone?ref=1": missing, "/gone?ref=2": missing},
						Fallback: crawltest.StaticPage(crawltest.HTML("a page"))}, early, test.seeds...)
					slices.Sort(got)
					if !slices.Equal(got, test.want) {
						t.Errorf("requested %q, want %q", got, test.want)
					}
				})
			})
		}
	}
}

// TestCleanParamUnparks: a page parked under a disallowed URL is visited when new rules remove the
// disallowed parameter.
func TestCleanParamUnparks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				text := "User-agent: *\nDisallow: /*sid=\n"
				if at.Sub(begin) > time.Hour {
					text += "Clean-param: sid\n"
				}
				return crawltest.RobotsSpec{Response: crawltest.Text(text)}
			}})
		store := memory.New(memory.Config{})
		runCrawl(t, newCrawl(t, web, store, "http://a.test/x?sid=1"))
		if got := requestedPages(web); got != nil {
			t.Fatalf("requested %q, though it is disallowed", got)
		}
		time.Sleep(25 * time.Hour)
		runCrawl(t, newCrawl(t, web, store, "http://a.test/y"))
		got := requestedPages(web)
		slices.Sort(got)
		if want := []string{"/x", "/y"}; !slices.Equal(got, want) {
			t.Errorf("requested %q, want %q", got, want)
		}
	})
}

// TestUseOriginalUnparks: a page that is visited under the URL it was found as is evaluated under
// that URL by new rules: its clean URL /x, which does not exist, may be disallowed.
func TestUseOriginalUnparks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Pages: map[string]crawltest.PageFunc{"/x": crawltest.StaticPage(crawltest.Status(404))},
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < time.Hour {
					return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: " +
						"/*sid=\nClean-param: sid\n")}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text(
					"User-agent: *\nDisallow: /x$\nClean-param: sid\n")}
			}})
		store := newMemoryStore()
		runCrawl(t, newCrawl(t, web, store, "http://a.test/x?sid=1"))
		time.Sleep(25 * time.Hour)
		runCrawl(t, newCrawl(t, web, store, "http://a.test/y"))
		got := requestedPages(web)
		slices.Sort(got)
		if want := []string{"/x", "/x?sid=1", "/y"}; !slices.Equal(got, want) {
			t.Errorf("requested %q, want %q", got, want)
		}
	})
}

// TestYandexSession: a crawl in the Yandex dialect begins with robots.txt, and a robots.txt that
// does not answer disallows nothing.
func TestYandexSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Robots: func(at time.Time) crawltest.RobotsSpec {
				if at.Sub(begin) < time.Minute {
					return crawltest.RobotsSpec{Response: crawltest.Status(503)}
				}
				return crawltest.RobotsSpec{Response: crawltest.Text("User-agent: *\nDisallow: /x\n")}
			}})
		store := memory.New(memory.Config{})
		for _, seeds := range [][]string{{"http://a.test/x"}, {"http://a.test/x/2", "http://a.test/y"}} {
			c := newCrawl(t, web, store, seeds...)
			c.Gate = gate.New(gate.Config{Agent: c.Gate.Agent(), Dialect: robots.Yandex, SessionStart: time.Now()},
				store)
			runCrawl(t, c)
			time.Sleep(10 * time.Minute)
		}
		urls, times := countRequests(web.Log())
		if got, want := requestedPages(web), []string{"/x", "/y"}; !slices.Equal(got, want) {
			t.Errorf("requested %q, want %q", got, want)
		}
		if times["http://a.test/robots.txt"] != 2 || urls[0] != "http://a.test/robots.txt" {
			t.Errorf("requests %q, want each session to begin with robots.txt", urls)
		}
	})
}

// TestSessionRedirect: a clean URL that redirects to one with a session ID is visited under that
// one.
func TestSessionRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := crawlCleaning(t, crawltest.Site{
			Robots: robotsText("User-agent: *\nClean-param: sid\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{
				"/s":       crawltest.StaticPage(crawltest.Redirect(302, "/s?sid=7")),
				"/s?sid=1": crawltest.StaticPage(crawltest.HTML("content")),
			}}, true, "/s?sid=1")
		if want := []string{"/s", "/s?sid=1"}; !slices.Equal(got, want) {
			t.Errorf("requested %q, want %q", got, want)
		}
	})
}

// TestFallBackKeepsToScope: if the clean URL does not exist, the URL it was found as is visited
// only if it is in scope.
func TestFallBackKeepsToScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test",
			Robots: robotsText("User-agent: *\nClean-param: sid\n", 0, nil),
			Pages:  map[string]crawltest.PageFunc{"/": pageWithLinks("/x?sid=3"), "/x?sid=3": pageWithLinks()}})
		store := newMemoryStore()
		c := newCrawl(t, web, store)
		seed, err := decorum.ParseURL("http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		c.Frontier = frontier.New(store, frontier.Config{CleanURL: c.Gate.CleanURL, Scope: frontier.NewScope(
			frontier.ScopeConfig{Exclude: []*regexp.Regexp{regexp.MustCompile("sid=")}}, []decorum.URL{seed})})
		if _, err := c.Frontier.Discover(t.Context(), storage.Entry{URL: seed}); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, times := countRequests(web.Log()); times["http://a.test/x?sid=3"] != 0 || times["http://a.test/x"] != 1 {
			t.Errorf("requests %v: want the clean URL only", times)
		}
	})
}
