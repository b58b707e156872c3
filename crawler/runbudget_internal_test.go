package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum"
)

// TestReleaseRunBudget: a page whose visit was not made is uncounted, and a page that was never
// counted is not.
func TestReleaseRunBudget(t *testing.T) {
	for _, kind := range []VisitKind{PageVisit, SitemapVisit} {
		var b runBudget
		b.beginRun(Settings{}.withDefaults(), nil)
		if d := b.countVisitIfAllowed(kind); d.Action != decorum.Proceed {
			t.Fatal(d.Err())
		}
		b.uncountVisit(kind)
		if pages := b.pagesBegun.Load(); pages != 0 {
			t.Errorf("%v: %d pages are counted, want none", kind, pages)
		}
	}
}
