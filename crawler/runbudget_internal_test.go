package crawler

import "testing"

// TestReleaseRunBudget: a page that was not visited after all is not counted, nor is what
// was never counted taken off.
func TestReleaseRunBudget(t *testing.T) {
	for _, kind := range []VisitKind{PageVisit, SitemapVisit} {
		c := &Crawler{Settings: Settings{}.withDefaults()}
		if err := c.acquireRunBudget(kind); err != nil {
			t.Fatal(err)
		}
		c.releaseRunBudget(kind)
		if pages := c.pagesBegun.Load(); pages != 0 {
			t.Errorf("%v: %d pages are counted, want none", kind, pages)
		}
	}
}
