package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// NamedCallbacks are the callbacks of a program, by the name that a project's handler
// field calls them by. Each registers its callbacks on the Collector of one
// crawl, which may be called by many workers at a time.
type NamedCallbacks map[string]func(*collyfetch.Collector)

// CheckHandler returns a fault if h has no callbacks of that name; the empty name
// asks for none.
func (h NamedCallbacks) CheckHandler(name string) *project.FieldProblem {
	if name == "" || h[name] != nil {
		return nil
	}
	if len(h) == 0 {
		return project.NewFieldProblem("handler", "%q names Go callbacks, and this program has none: they come from a program of your own that calls daemon.Main", name)
	}
	return project.NewFieldProblem("handler", "%q is not one of this program's handlers: %s", name, strings.Join(slices.Sorted(maps.Keys(h)), ", "))
}

// attachCallbacks gives the crawl of p its callbacks, if it has any: without, the crawler
// follows what is to be discovered.
func (h NamedCallbacks) attachCallbacks(c *crawler.Crawler, p project.Project, fetcher *httpfetch.Fetcher) {
	register := h[p.Handler]
	if register == nil {
		return
	}
	callbacks := collyfetch.NewCollector(c.Frontier, fetcher)
	callbacks.Log, callbacks.MaxRequestBody = c.Log, int64(p.Fetch.MaxRequestBody)
	register(callbacks)
	c.Fetcher, c.Handler = callbacks, callbacks.Handle
}
