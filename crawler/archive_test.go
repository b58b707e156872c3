package crawler_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestArchiveSeesEveryVisit: the archive gets every visit, also those to robots.txt and sitemaps.
func TestArchiveSeesEveryVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks(),
			Robots: robotsText("Sitemap: http://a.test/map.txt\n", 0, nil),
			Pages: map[string]crawltest.PageFunc{"/map.txt": crawltest.StaticPage(crawltest.ResponseOfType(
				"text/plain", "http://a.test/listed\n"))}})
		c := newCrawl(t, web, newMemoryStore(), "http://a.test/")
		archive := &visitLog{}
		c.Archive = archive
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(archive.lines)
		want := []string{"200 robots /map.txt", "200 seed /", "200 seed /robots.txt", "200 sitemap /listed"}
		if !slices.Equal(archive.lines, want) {
			t.Errorf("archived %q, want %q", archive.lines, want)
		}
	})
}

// TestArchiveOnFullDisk: visits that wait for the archive when the crawl is halted leave no trace:
// not even the rules of a robots.txt are known, and every URL is requested again.
func TestArchiveOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		c.Archive = fullDiskRecorder{until: time.Now().Add(time.Hour)}
		time.AfterFunc(time.Minute, c.Halt)
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
			t.Errorf("error %v, want ErrHalted", err)
		}
		second := newCrawl(t, web, store)
		second.Archive = fullDiskRecorder{until: time.Now().Add(time.Hour)}
		if err := second.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if urls, _ := countRequests(web.Log()); !slices.Equal(urls,
			[]string{"http://a.test/robots.txt", "http://a.test/robots.txt", "http://a.test/"}) {
			t.Errorf("visits %q, want robots.txt again before the page", urls)
		}
	})
}

type brokenArchive struct{}

var errBrokenArchive = errors.New("broken archive")

func (brokenArchive) Record(_ context.Context, v *crawler.Visit) error {
	if v.Clearance.IsForRobots() {
		return nil
	}
	return errBrokenArchive
}

// TestBrokenArchiveStopsTheCrawl: an archive that fails stops the crawl, and a visit that it failed
// to record is neither handled nor done.
func TestBrokenArchiveStopsTheCrawl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := crawltest.New(crawltest.Site{Host: "a.test", Fallback: pageWithLinks()})
		store := newMemoryStore()
		c := newCrawl(t, web, store, "http://a.test/")
		c.Archive = brokenArchive{}
		c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) {
			t.Error("a page was read that is not archived")
			return nil, nil
		}
		if err := c.Run(t.Context()); !errors.Is(err, errBrokenArchive) {
			t.Errorf("error %v, want that of the archive", err)
		}
		if n, err := countsOf(store); err != nil || n.QueuedURLs != 1 {
			t.Errorf("%d URLs queued (%v), want the page", n.QueuedURLs, err)
		}
	})
}
