package frontier

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Scope sees one URL at a time. How many of a kind there are is judged here: the
// URLs of an origin by the store as it adds them, those of a pattern before,
// where there may be too many, and counted when they are known to be new.

// crowded reports whether limits on how many there are hold for e. What a person
// named, and the crawl's own errands, pass by them.
func (f *Frontier) crowded(e *storage.Entry) bool {
	return f.cfg.Scope != nil && e.Source != storage.Seed && e.Source != storage.Robots
}

// addCrowd adds the entries for which there is room, and counts them.
func (f *Frontier) addCrowd(ctx context.Context, entries []storage.Entry) (added int, err error) {
	if entries, err = f.sift(ctx, entries); err != nil {
		return 0, err
	}
	fates, err := f.store.Add(ctx, entries, f.cfg.Scope.cfg.MaxURLsPerHost)
	f.familiar.meet(entries, fates)
	f.tellAdded(entries, fates)
	for i, fate := range fates {
		e := &entries[i]
		switch fate {
		case storage.Added:
			added++
			f.patterns.count(kindOf(e))
		case storage.Over:
			f.refuse(*e, f.cfg.Scope.fullHost(e.URL))
		}
	}
	return added, err
}

// sift refuses those of the entries that are one too many of their pattern, and
// returns the others. Mostly no pattern is near its limit.
func (f *Frontier) sift(ctx context.Context, entries []storage.Entry) ([]storage.Entry, error) {
	c := crowd{frontier: f, maxURLs: f.cfg.Scope.cfg.MaxURLsPerPattern, size: len(entries)}
	if f.patterns.highest()+c.size <= c.maxURLs {
		return entries, nil
	}
	in := entries[:0]
	for _, e := range entries {
		full, err := c.full(ctx, &e)
		if err != nil {
			return nil, err
		}
		if full {
			pattern, _ := Pattern(e.URL.Path())
			f.refuse(e, outOfScope(e.URL, refusalOf(FullOfPattern, "more than %d URLs as %s", c.maxURLs, pattern)))
			continue
		}
		in = append(in, e)
	}
	return in, nil
}

// kindOf returns the key of the host and pattern of e; 0 if e counts for none.
// Nothing is too much that a sitemap lists.
func kindOf(e *storage.Entry) uint64 {
	if e.Source == storage.Sitemap {
		return 0
	}
	return patternKey(e.URL.Origin().Host(), e.URL.Path())
}

// A crowd judges the entries of one call by how many URLs there are of their
// patterns.
type crowd struct {
	frontier *Frontier
	maxURLs  int // URLs of a pattern
	size     int // entries of the call
	passed   map[uint64]int
	offered  map[decorum.URL]bool
}

// full reports whether e is new and there are all the URLs of its kind that
// there may be.
func (c *crowd) full(ctx context.Context, e *storage.Entry) (bool, error) {
	kind := kindOf(e)
	if kind == 0 {
		return false, nil
	}
	capacity := c.maxURLs - c.frontier.patterns.counted(kind)
	if capacity >= c.size {
		return false, nil // whatever of the call is new
	}
	if known, err := c.known(ctx, e.URL); err != nil || known {
		return false, err
	}
	if c.passed[kind] >= capacity {
		return true, nil
	}
	c.passed[kind]++
	return false, nil
}

// known reports whether u is in the seen set, or was offered before in this call.
func (c *crowd) known(ctx context.Context, u decorum.URL) (bool, error) {
	if c.offered == nil {
		c.passed, c.offered = map[uint64]int{}, map[decorum.URL]bool{}
	}
	if c.offered[u] {
		return true, nil
	}
	c.offered[u] = true
	store, ok := c.frontier.store.(storage.Inspector)
	if !ok {
		return false, nil // what is met again counts again: the limit comes sooner
	}
	return store.Known(ctx, u)
}

// fullHost returns the error that refuses u where its origin has all the URLs
// that it may have.
func (s *Scope) fullHost(u decorum.URL) error {
	return outOfScope(u, refusalOf(FullHost, "more than %d URLs of the host", s.cfg.MaxURLsPerHost))
}

// CheckURLLimits returns why a link to u, which the crawl does not know, would be refused
// for the URLs that its host has, or for the hosts that there are; nil if it would
// not, or the store cannot tell.
func (f *Frontier) CheckURLLimits(ctx context.Context, u decorum.URL) (refusal, err error) {
	store, ok := f.store.(storage.Inspector)
	if f.cfg.Scope == nil || !ok {
		return nil, nil
	}
	info, met, err := store.Origin(ctx, u.Origin())
	switch {
	case err != nil:
		return nil, err
	case info.Seen >= f.cfg.Scope.cfg.MaxURLsPerHost:
		return f.cfg.Scope.fullHost(u), nil
	case met && info.Seen > 0:
		return nil, nil // the host already has URLs
	}
	return f.checkHostLimits(ctx, u)
}
