package daemon

import (
	"maps"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/frontier"
)

// Handlers are the callbacks of a program, by the name that a project's handler
// field calls them by. Each registers its callbacks on the Collector of one
// crawl.
type Handlers map[string]func(*collyfetch.Collector)

// unknown returns a fault if h has no callbacks of that name; the empty name
// asks for none.
func (h Handlers) unknown(name string) *fault {
	if name == "" || h[name] != nil {
		return nil
	}
	if len(h) == 0 {
		return faulty("handler", "%q names Go callbacks, and this program has none: they come from a program of your own that calls daemon.Main", name)
	}
	return faulty("handler", "%q is not one of this program's handlers: %s", name, strings.Join(slices.Sorted(maps.Keys(h)), ", "))
}

// handler returns what reads the pages of p: its callbacks, or what follows what
// is to be discovered.
func (h Handlers) handler(p Project, f *frontier.Frontier) crawler.Handler {
	register := h[p.Handler]
	if register == nil {
		return nil // crawler.FollowLinks
	}
	c := collyfetch.NewCollector(f)
	register(c)
	return c.Handle
}
