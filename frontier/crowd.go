package frontier

import (
	"context"
	"errors"
	"sync"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A crowd judges the entries of one Discover by how many URLs of their kind
// there are: Scope sees one URL at a time.
type crowd struct {
	frontier *Frontier
	hosts    map[string]int // URLs of each, at most: those ever queued, and those of this call
	offered  map[decorum.URL]bool
}

// admit returns why e is one too many; nil if it is not, or is known already.
func (c *crowd) admit(ctx context.Context, e *storage.Entry) (refusal, err error) {
	scope := c.frontier.cfg.Scope
	if scope == nil || e.Source == storage.Seed || e.Source == storage.Robots {
		return nil, nil
	}
	full, err := c.full(ctx, e.URL.Origin(), scope.cfg.MaxURLsPerHost)
	if err != nil {
		return nil, err
	}
	pattern, folded := "", false
	if e.Source != storage.Sitemap {
		pattern, folded = Pattern(e.URL.Path())
	}
	if !full && !folded {
		return nil, nil
	}
	if known, err := c.known(ctx, e.URL); err != nil || known {
		return nil, err
	}
	most := scope.cfg.MaxURLsPerPattern
	switch {
	case full:
		return scope.fullHost(e.URL), nil
	case !c.frontier.patterns.take(e.URL.Origin().Host(), pattern, most):
		return outOfScope(e.URL, refusalOf(FullOfPattern, "more than %d URLs as %s", most, pattern)), nil
	}
	return nil, nil
}

// fullHost returns the error that refuses u where its host has all the URLs that
// it may have.
func (s *Scope) fullHost(u decorum.URL) error {
	return outOfScope(u, refusalOf(FullHost, "more than %d URLs of the host", s.cfg.MaxURLsPerHost))
}

// Room returns why a link to u, which the crawl does not know, would be refused
// for the URLs that its host has; nil if it would not.
func (f *Frontier) Room(ctx context.Context, u decorum.URL) (refusal, err error) {
	if f.cfg.Scope == nil {
		return nil, nil
	}
	c := crowd{frontier: f}
	if full, err := c.full(ctx, u.Origin(), f.cfg.Scope.cfg.MaxURLsPerHost); err != nil || !full {
		return nil, err
	}
	return f.cfg.Scope.fullHost(u), nil
}

// full counts an entry of o and reports whether the host has all the URLs that it
// may have.
func (c *crowd) full(ctx context.Context, o decorum.Origin, most int) (bool, error) {
	host := o.Host()
	n, asked := c.hosts[host]
	if !asked {
		if c.frontier.roomy.take(host) {
			return false, nil
		}
		var err error
		if n, err = c.frontier.urlsOf(ctx, o); err != nil {
			return false, err
		}
		if c.hosts == nil {
			c.hosts = map[string]int{}
		}
		c.frontier.roomy.note(host, (most-n)/2)
	}
	c.hosts[host] = n + 1
	return n >= most, nil
}

// roomy knows of how many further URLs of a host the store need not be asked
// how many it has: half of what it had room for when it was asked.
type roomy struct {
	mu    sync.Mutex
	hosts map[string]int
}

func (r *roomy) take(host string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts[host] < 1 {
		return false
	}
	r.hosts[host]--
	return true
}

// note forgets all other hosts when there are too many.
func (r *roomy) note(host string, room int) {
	const most = 200_000
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts == nil || len(r.hosts) >= most {
		r.hosts = map[string]int{}
	}
	r.hosts[host] = room
}

// known reports whether u is in the seen set, or was offered before in this call.
func (c *crowd) known(ctx context.Context, u decorum.URL) (bool, error) {
	if c.offered[u] {
		return true, nil
	}
	if c.offered == nil {
		c.offered = map[decorum.URL]bool{}
	}
	c.offered[u] = true
	store, ok := c.frontier.store.(storage.Inspector)
	if !ok {
		return false, nil // what is met again counts again: the limit comes sooner
	}
	return store.Known(ctx, u)
}

// urlsOf counts the URLs of o's host that were ever queued, on o itself and on
// the usual ports; none if the store cannot tell.
func (f *Frontier) urlsOf(ctx context.Context, o decorum.Origin) (n int, err error) {
	store, ok := f.store.(storage.Inspector)
	if !ok {
		return 0, nil
	}
	origins := map[decorum.Origin]bool{o: true}
	for _, scheme := range [...]string{"http://", "https://"} {
		if u, err := decorum.ParseURL(scheme + o.Host() + "/"); err == nil {
			origins[u.Origin()] = true
		}
	}
	for o := range origins {
		info, _, e := store.Origin(ctx, o)
		n, err = n+info.Seen, errors.Join(err, e)
	}
	return n, err
}
