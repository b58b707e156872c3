package crawler_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
)

// TestRevisitedSeedMoves: a seed that had a page moves to another host, which then belongs to the
// crawl; so does a host behind a redirect within the seed's own host.
func TestRevisitedSeedMoves(t *testing.T) {
	for _, location := range []string{"http://www.a.test/", "http://a.test/home"} {
		synctest.Test(t, func(t *testing.T) {
			moved := false
			web := crawltest.New(
				crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
					"/": func(crawltest.PageRequest) crawltest.Response {
						if moved {
							return crawltest.Redirect(301, location)
						}
						return crawltest.HTML("home")
					},
					"/home": crawltest.StaticPage(crawltest.Redirect(301, "http://www.a.test/")),
				}},
				crawltest.Site{Host: "www.a.test", Fallback: pageWithLinks("http://www.a.test/two")})
			c := newScopedCrawl(t, web, newMemoryStore(), frontier.ScopeConfig{SeedRedirects: frontier.AnyScope},
				"http://a.test/")
			c.Settings.Revisit = dailyRevisits
			run := func() (urls []string) {
				if err := c.Run(t.Context()); !errors.Is(err, frontier.ErrOnlyRevisitsLeft) {
					t.Fatal(err)
				}
				urls, _ = countRequests(web.Log())
				return urls
			}
			if urls := run(); slices.Contains(urls, "http://www.a.test/two") {
				t.Errorf("requested %q before the seed has moved", urls)
			}
			moved = true
			time.Sleep(day)
			if urls := run(); !slices.Contains(urls, "http://www.a.test/two") {
				t.Errorf("requested %q, want the site that the seed has moved to", urls)
			}
		})
	}
}
