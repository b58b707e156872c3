package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestReleaseRunBudget: a page that was not visited after all is not counted, nor is what
// was never counted taken off.
func TestReleaseRunBudget(t *testing.T) {
	for _, kind := range []VisitKind{PageVisit, SitemapVisit} {
		c := &Crawler{Settings: Settings{}.withDefaults()}
		if d := c.acquireRunBudget(kind); d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
		c.releaseRunBudget(kind)
		if pages := c.pagesBegun.Load(); pages != 0 {
			t.Errorf("%v: %d pages are counted, want none", kind, pages)
		}
	}
}
