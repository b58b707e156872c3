package engine

import (
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/project"
)

// A PageHandlerRegistry holds the page handlers of a program. It is nil for a program without handlers.
// See daemon.PageHandlerRegistry, which documents the methods.
type PageHandlerRegistry interface {
	Names() []string
	Attach(name string, c *crawler.Crawler, fetcher *httpfetch.Fetcher, maxRequestBody int64)
}

// handlerNames returns the names of h, which may be nil.
func handlerNames(h PageHandlerRegistry) []string {
	if h == nil {
		return nil
	}
	return h.Names()
}

// CheckHandler returns a problem if h, which may be nil, lacks the named handler. The empty name means no
// handler, and is always valid.
func CheckHandler(h PageHandlerRegistry, name string) *project.FieldProblem {
	names := handlerNames(h)
	switch {
	case name == "" || slices.Contains(names, name):
		return nil
	case len(names) == 0:
		return project.NewFieldProblem("handler", "%q names Go callbacks, and this program has none: they come from "+
			"a program of your own that calls daemon.Main", name)
	}
	return project.NewFieldProblem("handler", "%q is not one of this program's handlers: %s%s",
		name, strings.Join(names, ", "), project.DidYouMean(name, names))
}

// attachHandler attaches the handler that p names to c. If p names none, the crawler follows the links
// itself.
func attachHandler(h PageHandlerRegistry, c *crawler.Crawler, p project.Project, fetcher *httpfetch.Fetcher) {
	if slices.Contains(handlerNames(h), p.Handler) {
		h.Attach(p.Handler, c, fetcher, int64(p.Fetch.MaxRequestBody))
	}
}
