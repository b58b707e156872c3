package crawler_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// newPostSite returns a site that accepts a POST.
func newPostSite() *crawltest.Web {
	return crawltest.New(crawltest.Site{Host: "a.test",
		OtherMethodPages: map[string]crawltest.PageFunc{"/box": crawltest.StaticPage(crawltest.HTML("thanks"))}})
}

// postEntry returns an entry that posts a letter to that site.
func postEntry(t *testing.T) storage.Entry {
	t.Helper()
	u, err := decorum.ParseURL("http://a.test/box")
	if err != nil {
		t.Fatal(err)
	}
	return storage.Entry{URL: u, Request: &storage.NonGETRequest{Method: http.MethodPost, Body: []byte("letter")}}
}

// countPosts counts the letters that arrived.
func countPosts(web *crawltest.Web) (n int) {
	for _, x := range web.Log() {
		if x.Method == http.MethodPost {
			n++
		}
	}
	return n
}

// A failingFlushStore cannot flush until a given time.
type failingFlushStore struct {
	storage.Store
	until         time.Time
	failedFlushes int
}

func (s *failingFlushStore) Flush(ctx context.Context) error {
	if time.Now().Before(s.until) {
		s.failedFlushes++
		return storage.ErrWriteStalled
	}
	return s.Store.Flush(ctx)
}

// TestNotSentWithoutMark: an unsafe request is not sent while the store cannot mark it, and is sent
// once it can.
func TestNotSentWithoutMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, store := newPostSite(), &failingFlushStore{Store: newMemoryStore(), until: time.Now().Add(time.Minute)}
		c := newCrawl(t, web, store)
		if _, err := c.Frontier.Discover(t.Context(), postEntry(t)); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if s := c.Stats(); countPosts(web) != 1 || store.failedFlushes == 0 || s.InDoubt != 0 || s.GivenUp != 0 {
			t.Errorf("posted %d times, %d flushes failed, stats %+v", countPosts(web), store.failedFlushes, s)
		}
		if x := web.Log()[len(web.Log())-1]; x.Start.Before(store.until) {
			t.Errorf("posted at %v, when nothing could be noted before %v", x.Start, store.until)
		}
	})
}

// TestSentBefore: a request that is marked as sent is not sent again, whatever left the mark, and
// is logged once.
func TestSentBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, store := newPostSite(), newMemoryStore()
		c := newCrawl(t, web, store)
		if _, err := c.Frontier.Discover(t.Context(), postEntry(t)); err != nil {
			t.Fatal(err)
		}
		l, err := c.Frontier.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Frontier.Store().MarkSent(t.Context(), l, true),
			c.Frontier.Ack(t.Context(), storage.Ack{Lease: l, Outcome: storage.Requeue})); err != nil {
			t.Fatal(err)
		}
		var failed []error
		c.Hooks.Visited = func(v *crawler.Visit) {
			if v.Err != nil {
				failed = append(failed, v.Err)
			}
		}
		for range 2 {
			if err := c.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if countPosts(web) != 0 || c.Stats().InDoubt != 1 || len(failed) != 1 ||
			!errors.Is(failed[0], decorum.InDoubt) {
			t.Errorf("posted %d times, %d in doubt, errors %v", countPosts(web), c.Stats().InDoubt, failed)
		}
	})
}

// TestOnlyPagesAreVisitedAgain: a crawl that revisits its pages every hour sends its POST once.
func TestOnlyPagesAreVisitedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newPostSite()
		c := newCrawl(t, web, newMemoryStore())
		c.Settings.Revisit = frontier.RevisitPolicy{Mode: frontier.IntervalRevisit, Interval: time.Hour}
		if _, err := c.Frontier.Discover(t.Context(), postEntry(t)); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Hour)
		if err := c.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if n := countPosts(web); n != 1 {
			t.Errorf("posted %d times", n)
		}
	})
}
