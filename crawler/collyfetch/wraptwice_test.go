package collyfetch_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// TestWrapTwice: a collector belongs to one crawl, and so does its Clone.
func TestWrapTwice(t *testing.T) {
	for name, other := range map[string]func(*colly.Collector) *colly.Collector{
		"itself": func(c *colly.Collector) *colly.Collector { return c },
		"Clone":  func(c *colly.Collector) *colly.Collector { return c.Clone() },
	} {
		c := colly.NewCollector()
		wrapCollector(t, c, quietOptions(smallWeb()))
		second, err := collyfetch.Wrap(other(c), quietOptions(smallWeb()))
		if err == nil || !strings.Contains(err.Error(), "Join") {
			t.Errorf("%s: Wrap returned %v, %v; want an error that names Join", name, second, err)
		}
	}
}

// TestTwoCrawlsOfClones: Clones share their transport in colly, so wrapping a Clone takes the
// transport away from the first crawl. The first crawl's visits then fail; no page reaches the
// wrong callbacks.
func TestTwoCrawlsOfClones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := colly.NewCollector()
		clone := c.Clone()
		webs := []*crawltest.Web{smallWeb(), smallWeb()}
		first, second := wrapCollector(t, c, quietOptions(webs[0])), wrapCollector(t, clone, quietOptions(webs[1]))
		check := func(want string) func(*colly.Response) {
			return func(r *colly.Response) {
				if !strings.Contains(string(r.Body), want) {
					t.Errorf("the callbacks for %s got %s", want, r.Body)
				}
			}
		}
		first.OnResponse(check("Church"))
		second.OnResponse(check("Mill"))
		second.OnRequest(func(*colly.Request) { // during a visit of the second crawl
			if err := first.Visit("http://a.test/church"); err != nil {
				t.Error(err)
			}
		})
		must(t, second.Visit("http://a.test/mill"))
		for i, want := range [][]string{{"/robots.txt"}, {"/robots.txt", "/mill"}} {
			var got []string
			for _, x := range webs[i].Log() {
				got = append(got, strings.TrimPrefix(x.URL, "http://a.test"))
			}
			if !slices.Equal(got, want) {
				t.Errorf("web %d saw %q, want %q", i, got, want)
			}
		}
	})
}
