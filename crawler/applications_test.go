package crawler_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
)

// TestApplicationSites: the crawl visits all pages of sites that behave as real applications do, with
// few visits more, and the judge finds no fault. It logs what each site cost.
func TestApplicationSites(t *testing.T) {
	for _, site := range crawltest.ApplicationSites() {
		t.Run(strings.ReplaceAll(site.Name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				web := crawltest.New(site.Site)
				scope := frontier.ScopeConfig{}
				if site.Site.AnswersSubdomains {
					scope.Mode = frontier.DomainScope
				}
				c := newScopedCrawl(t, web, newMemoryStore(), scope, site.Seeds...)
				c.Settings.TrySitemapXML = true
				begin := time.Now()
				time.AfterFunc(48*time.Hour, c.Halt) // a trap must end by itself before
				if err := c.Run(t.Context()); err != nil {
					t.Error(err)
				}
				visits, refused := 0, 0
				visited := map[string]bool{}
				for _, x := range web.Log() {
					if strings.HasSuffix(x.URL, "/robots.txt") || strings.HasSuffix(x.URL, "/sitemap.xml") {
						continue
					}
					visits++
					visited[x.URL] = true
					if x.Status == http.StatusTooManyRequests {
						refused++
					}
				}
				missed := 0
				for _, page := range site.WantedPages {
					if !visited[page] {
						if missed++; missed <= 3 {
							t.Errorf("%s was not visited", page)
						}
					}
				}
				t.Logf("%d of %d pages, %d visits, %d duplicates, %d answers of 429, %v", len(site.WantedPages)-missed,
					len(site.WantedPages), visits, c.Stats().DuplicateBodies, refused,
					time.Since(begin).Round(time.Second))
				if most := len(site.WantedPages) + site.ExtraVisits; visits > most {
					t.Errorf("%d visits, want at most %d", visits, most)
				}
				checkPoliteness(t, web, time.Second)
			})
		})
	}
}
