package collyfetch_test

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/gocolly/colly/v2"
)

// TestAnotherBodyIsNoRetry: a callback that requests the URL of its own page with another body,
// such as the next page of an API, makes a new request, whichever method it calls.
func TestAnotherBodyIsNoRetry(t *testing.T) {
	for name, ask := range map[string]func(c *colly.Collector, r *colly.Request, body []byte) error{
		"New and Do": func(_ *colly.Collector, r *colly.Request, body []byte) error {
			next, err := r.New("POST", r.URL.String(), bytes.NewReader(body))
			if err != nil {
				return err
			}
			next.Depth = r.Depth
			return next.Do()
		},
		"Request with Ctx": func(c *colly.Collector, r *colly.Request, body []byte) error {
			return c.Request("POST", r.URL.String(), bytes.NewReader(body), r.Ctx, nil)
		},
		"a reader that cannot go back": func(c *colly.Collector, r *colly.Request, body []byte) error {
			return c.Request("POST", r.URL.String(), bytes.NewBuffer(body), r.Ctx, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, got := formsWeb(nil)
				c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
				page := byte('1')
				c.OnResponse(func(r *colly.Response) {
					if page++; page <= '3' {
						must(t, ask(c.Collector.Collector, r.Request, []byte{page}))
					}
				})
				must(t, c.PostRaw("http://a.test/form", []byte("1")))
				const form = "POST /form application/x-www-form-urlencoded "
				if want := []string{form + `"1"`, form + `"2"`, form + `"3"`}; !slices.Equal(got(), want) {
					t.Errorf("the server got %q, want %q", got(), want)
				}
				checkPolite(t, web)
			})
		})
	}
}

// TestAnotherCollectorIsNoRetry: a collector that requests the page that a callback of another
// collector handles requests a known URL.
func TestAnotherCollectorIsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, got := formsWeb(nil)
		c := wrapCollector(t, colly.NewCollector(), quietOptions(web))
		detail := c.Clone()
		must(t, c.JoinCollector("detail", detail))
		c.OnResponse(func(r *colly.Response) {
			must(t, detail.Request("GET", r.Request.URL.String(), nil, r.Ctx, nil))
		})
		must(t, c.Visit("http://a.test/form"))
		if len(got()) != 1 || c.Stats().Retries != 0 {
			t.Errorf("the server got %q after %d retries, want it once", got(), c.Stats().Retries)
		}
	})
}
