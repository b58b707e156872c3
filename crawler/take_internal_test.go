package crawler

import (
	"testing"

	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// TestUntake: what was taken is given back, and no more: a limit that has been
// reached stays reached.
func TestUntake(t *testing.T) {
	for _, e := range []storage.Entry{
		{Source: storage.Link},
		{Source: storage.Robots},
	} {
		c := &Crawler{Settings: Settings{}.withDefaults()}
		l := storage.Lease{Entry: e}
		if err := c.take(l, robots.Clearance{}); err != nil {
			t.Fatal(err)
		}
		c.untake(l, robots.Clearance{})
		if pages := c.pages.Load(); pages != 0 {
			t.Errorf("%+v: %d pages are counted, want none", e, pages)
		}
	}
}
