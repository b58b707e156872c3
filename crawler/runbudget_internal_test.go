package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// TestCountOut: a page that was not visited after all is not counted, nor is what
// was never counted taken off.
func TestCountOut(t *testing.T) {
	for _, e := range []storage.Entry{
		{Source: storage.Link},
		{Source: storage.Robots},
	} {
		c := &Crawler{Settings: Settings{}.withDefaults()}
		l := storage.Lease{Entry: e}
		if err := c.countIn(l, robots.Clearance{}); err != nil {
			t.Fatal(err)
		}
		c.countOut(l, robots.Clearance{})
		if pages := c.pages.Load(); pages != 0 {
			t.Errorf("%+v: %d pages are counted, want none", e, pages)
		}
	}
}
