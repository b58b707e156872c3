package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// TestReleaseRunBudget: a page that was not visited after all is not counted, nor is what
// was never counted taken off.
func TestReleaseRunBudget(t *testing.T) {
	for _, e := range []storage.Entry{
		{Source: storage.SourceLink},
		{Source: storage.SourcePrerequisite},
	} {
		c := &Crawler{Settings: Settings{}.withDefaults()}
		l := storage.Lease{Entry: e}
		if err := c.acquireRunBudget(l, gate.Clearance{}); err != nil {
			t.Fatal(err)
		}
		c.releaseRunBudget(l, gate.Clearance{})
		if pages := c.pagesBegun.Load(); pages != 0 {
			t.Errorf("%+v: %d pages are counted, want none", e, pages)
		}
	}
}
