package crawler_test

import (
	"testing"
	"testing/synctest"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// duplicateSite is a site with pages that name other URLs as canonical, and pages with the same
// body.
func duplicateSite() crawltest.Site {
	byHeader := crawltest.ResponseOfType("application/pdf", "%PDF")
	byHeader.Header.Set("Link", "</whole>; rel=canonical")
	return crawltest.Site{Host: "a.test", Pages: map[string]crawltest.PageFunc{
		"/": crawltest.StaticPage(crawltest.HTML("<link rel=canonical href=/><a href=/print><a href=/pdf><a " +
			"href=/one><a href=/two><a href=/three><a href=/none>")),
		"/print": crawltest.StaticPage(crawltest.HTML("<link rel=canonical href=http://a.test/page>for printing")),
		"/pdf":   crawltest.StaticPage(byHeader),
		"/page":  crawltest.StaticPage(crawltest.HTML("<link rel=canonical href=/page>the page")),
		"/whole": crawltest.StaticPage(crawltest.HTML("the whole")),
		"/one":   crawltest.StaticPage(crawltest.HTML("same")),
		"/two":   crawltest.StaticPage(crawltest.HTML("same")),
		"/three": crawltest.StaticPage(crawltest.HTML("same")),
		"/none":  crawltest.StaticPage(crawltest.Status(404)),
	}}
}

// TestCanonical: a page's canonical URL is visited if the settings say so, even if links are not,
// and each page is counted under its own URL.
func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		follow  crawler.FollowedLinkKinds
		want    []string
		renamed int64
	}{
		{crawler.FollowedLinkKinds{}, []string{"/", "/print", "/pdf", "/one", "/two", "/three",
			"/none", "/page", "/whole"}, 2},
		{crawler.FollowedLinkKinds{NoCanonical: true},
			[]string{"/", "/print", "/pdf", "/one", "/two", "/three", "/none"}, 2},
		{crawler.FollowedLinkKinds{NoLinks: true}, []string{"/"}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(duplicateSite())
			c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
			c.Settings.FollowedLinkKinds = test.follow
			j := &visitLog{}
			c.PageRecorder = j
			runCrawl(t, c)
			wantLines(t, requestedPages(web), test.want...)
			if st := c.Stats(); st.NonCanonical != test.renamed || len(j.lines) != len(test.want) {
				t.Errorf("%+v: %d pages name another URL, want %d", test.follow, st.NonCanonical, test.renamed)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(duplicateSite())
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/print", "http://a.test/pdf")
		c.Settings.FollowedLinkKinds = crawler.FollowedLinkKinds{NoLinks: true}
		runCrawl(t, c)
		wantLines(t, requestedPages(web), "/print", "/pdf", "/page", "/whole")
	})
}

// TestDuplicates: pages with the body of another page are counted once each, however often they are
// visited, with or without a recorder.
func TestDuplicates(t *testing.T) {
	for _, recorder := range []crawler.Recorder{new(visitLog), nil} {
		synctest.Test(t, func(t *testing.T) {
			web := crawltest.New(duplicateSite())
			c, _ := newRevisitCrawl(t, web, newMemoryStore(), dailyRevisits, true, "http://a.test/")
			c.PageRecorder = recorder
			runFor(t, c, 3*day)
			if st := c.Stats(); st.DuplicateBodies != 2 || st.NonCanonical != 2 || st.Revisits == 0 {
				t.Errorf("%T: %d duplicates and %d pages that name another URL, want 2 and 2, after %d revisits",
					recorder, st.DuplicateBodies, st.NonCanonical, st.Revisits)
			}
		})
	}
}
