package collyfetch

import (
	"maps"
	"slices"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

// NamedCallbacks are the callbacks of a program, by the name that a project's handler
// field calls them by. Each func registers its callbacks on the Collector of one
// crawl, which may be called by many workers at a time. They are daemon.Handlers.
type NamedCallbacks map[string]func(*Collector)

// Names returns the names whose func is not nil, sorted.
func (n NamedCallbacks) Names() []string {
	isNil := func(name string) bool { return n[name] == nil }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(n)), isNil)
}

// Attach has the callbacks of that name, which is one of Names, called for the pages of c: it
// sets the Fetcher and the Handler of c. Their requests are sent by fetcher; the body of one
// has at most maxRequestBody bytes, see Collector.
func (n NamedCallbacks) Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64) {
	callbacks := NewCollector(c.Frontier, fetcher)
	callbacks.Log, callbacks.MaxRequestBody = c.Log, maxRequestBody
	n[name](callbacks)
	c.Fetcher, c.Handler = callbacks, callbacks.Handle
}
