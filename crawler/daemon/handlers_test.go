package daemon

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
)

// A program's own callbacks read the pages, and say where to go on.
func TestHandlers(t *testing.T) {
	v := visitTo(t, shop())
	project := write(t, "p.yaml", "agent: {contact: 'mailto:bot@example.com'}\nhandler: titles\n")
	var mu sync.Mutex
	var titles []string
	var stderr bytes.Buffer
	a := &app{stdout: &bytes.Buffer{}, screen: newScreen(&stderr), handlers: Handlers{
		"titles": func(c *collyfetch.Collector) {
			c.OnHTML("title", func(e *colly.HTMLElement) {
				mu.Lock()
				defer mu.Unlock()
				titles = append(titles, e.Text)
			})
			c.OnHTML("a[href^='/b']", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) })
		},
	}}
	code := a.main(v.args("-c", project, "http://shop.example/"))
	slices.Sort(titles)
	if code != ExitDone || !slices.Equal(titles, []string{"B", "Shop & Co."}) {
		t.Errorf("exit code %d, titles %q; want those of the two pages that were visited\n%s", code, titles, &stderr)
	}
}

func TestUnknownHandler(t *testing.T) {
	h := Handlers{"books": func(*collyfetch.Collector) {}, "films": func(*collyfetch.Collector) {}}
	for _, tt := range []struct{ name, handler, want string }{
		{"none asked for", "", ""},
		{"known", "books", ""},
		{"unknown", "songs", `"songs" is not one of this program's handlers: books, films`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if f := h.unknown(tt.handler); f != nil {
				got = strings.TrimPrefix(f.problem, ": ")
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
