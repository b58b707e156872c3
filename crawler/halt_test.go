package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
)

// TestHandlerIsHalted: if a handler returns the error of its context because the crawl is halted,
// the page is visited again, however few attempts are left.
func TestHandlerIsHalted(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{
		"its error": func(ctx context.Context) error { return fmt.Errorf("write: %w", ctx.Err()) },
		"its cause": context.Cause,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, store := newOneHostWeb(0), newMemoryStore()
				c := newDirectCrawl(t, web, store, numberedSeeds(1, "a.test", "x")...)
				c.Settings.MaxAttempts = 1
				records := recordCounter{}
				c.PageRecorder = records
				c.Handler = func(ctx context.Context, _ *crawler.Visit) ([]crawler.LinkToVisit, error) {
					<-ctx.Done()
					return nil, end(ctx)
				}
				time.AfterFunc(10*time.Second, c.Halt)
				if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrHalted) {
					t.Fatal(err)
				}
				counts, err := countsOf(store)
				if s := c.Stats(); err != nil || counts.QueuedURLs != 1 ||
					len(records) != 0 || s.GivenUp+s.Retries != 0 {
					t.Errorf("queued: %d, recorded: %d, %+v (%v)", counts.QueuedURLs, len(records), s, err)
				}
				c.Handler = nil
				if err := c.Run(t.Context()); err != nil || records["http://a.test/x/0"] != 1 {
					t.Errorf("recorded: %v (%v), want the page once", records, err)
				}
			})
		})
	}
}
