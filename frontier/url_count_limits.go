package frontier

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Scope sees one URL at a time. How many of a kind there are is judged here: the
// URLs of an origin by the store as it adds them, those of a pattern by a urlsPerPatternLimiter
// before, where there may be too many, and counted when they are known to be new.

// isSubjectToCountLimits reports whether limits on how many there are hold for e. What a person
// named, and the crawl's own errands, pass by them.
func (f *Frontier) isSubjectToCountLimits(e *storage.Entry) bool {
	return f.cfg.Scope != nil && e.Source != storage.SourceSeed && e.Source != storage.SourcePrerequisite
}

// addLimited adds the entries for which there is room, and counts them.
func (f *Frontier) addLimited(ctx context.Context, entries []storage.Entry) (added int, err error) {
	if entries, err = f.patterns.filter(ctx, entries); err != nil {
		return 0, err
	}
	results, err := f.addToStore(ctx, entries, f.cfg.Scope.cfg.MaxURLsPerHost)
	for i, result := range results {
		e := &entries[i]
		switch result {
		case storage.Added:
			added++
			f.patterns.counts.addURL(entryPatternKey(e))
		case storage.OverLimit:
			f.refusals.countAndReport(*e, f.cfg.Scope.newHostURLLimitError(e.URL))
		}
	}
	return added, err
}

// newHostURLLimitError returns the error that refuses u where its origin has all the URLs
// that it may have.
func (s *Scope) newHostURLLimitError(u decorum.URL) error {
	return outOfScopeError(u, newRefusal(TooManyHostURLs, "more than %d URLs of the host", s.cfg.MaxURLsPerHost))
}

// CheckLinkAgainstCountLimits returns why a link to u, which the crawl does not know, would be refused
// for the URLs that its host has, or for the hosts that there are; nil if it would
// not, or the store cannot tell.
func (f *Frontier) CheckLinkAgainstCountLimits(ctx context.Context, u decorum.URL) (refusal, err error) {
	store, ok := f.store.(storage.Inspector)
	if f.cfg.Scope == nil || !ok {
		return nil, nil
	}
	info, known, err := store.Origin(ctx, u.Origin())
	switch {
	case err != nil:
		return nil, err
	case info.SeenURLs >= f.cfg.Scope.cfg.MaxURLsPerHost:
		return f.cfg.Scope.newHostURLLimitError(u), nil
	case known && info.SeenURLs > 0:
		return nil, nil // the host already has URLs
	}
	return f.hosts.refusalOf(ctx, u)
}

// A urlsPerPatternLimiter refuses URLs that are one too many of their host and pattern.
type urlsPerPatternLimiter struct {
	maxURLs  int               // URLs of a pattern
	seen     storage.Inspector // has the seen set; nil: what is met again counts again, and the limit comes sooner
	refusals *refusalCounter   // counts what filter refuses
	counts   patternCounts     // the URLs that are known to be new
}

// filter refuses those of the entries that are one too many of their pattern, and
// returns the others in the same slice. Mostly no pattern is near its limit.
func (l *urlsPerPatternLimiter) filter(ctx context.Context, entries []storage.Entry) ([]storage.Entry, error) {
	c := urlsPerPatternChecker{limiter: l, batchSize: len(entries)}
	if l.counts.highestCount()+c.batchSize <= l.maxURLs {
		return entries, nil
	}
	in := entries[:0]
	for _, e := range entries {
		exceeds, err := c.countNewURLAgainstLimit(ctx, &e)
		if err != nil {
			return nil, err
		}
		if exceeds {
			pattern, _ := URLPattern(e.URL.PathAndQuery())
			l.refusals.countAndReport(e, outOfScopeError(e.URL, newRefusal(TooManyPatternURLs, "more than %d URLs as %s", l.maxURLs, pattern)))
			continue
		}
		in = append(in, e)
	}
	return in, nil
}

// entryPatternKey returns the key of the host and pattern of e; 0 if e counts for none.
// Nothing is too much that a sitemap lists.
func entryPatternKey(e *storage.Entry) uint64 {
	if e.Source == storage.SourceSitemap {
		return 0
	}
	return urlPatternKey(e.URL.Origin().Host(), e.URL.PathAndQuery())
}

// A urlsPerPatternChecker judges the entries of one call by how many URLs there are of their
// patterns.
type urlsPerPatternChecker struct {
	limiter           *urlsPerPatternLimiter
	batchSize         int                  // entries of the call
	acceptedByPattern map[uint64]int       // new URLs of the call, by urlPatternKey
	offeredURLs       map[decorum.URL]bool // URLs of the call whose pattern is near its limit
}

// countNewURLAgainstLimit reports whether e is new and there are all the URLs of its kind that
// there may be.
func (c *urlsPerPatternChecker) countNewURLAgainstLimit(ctx context.Context, e *storage.Entry) (bool, error) {
	key := entryPatternKey(e)
	if key == 0 {
		return false, nil
	}
	capacity := c.limiter.maxURLs - c.limiter.counts.urlCount(key)
	if capacity >= c.batchSize {
		return false, nil // whatever of the call is new
	}
	if known, err := c.addURLAndReportKnown(ctx, e.URL); err != nil || known {
		return false, err
	}
	if c.acceptedByPattern[key] >= capacity {
		return true, nil
	}
	c.acceptedByPattern[key]++
	return false, nil
}

// addURLAndReportKnown reports whether u is in the seen set, or was offered before in this call.
func (c *urlsPerPatternChecker) addURLAndReportKnown(ctx context.Context, u decorum.URL) (bool, error) {
	if c.offeredURLs == nil {
		c.acceptedByPattern, c.offeredURLs = map[uint64]int{}, map[decorum.URL]bool{}
	}
	if c.offeredURLs[u] {
		return true, nil
	}
	c.offeredURLs[u] = true
	if c.limiter.seen == nil {
		return false, nil
	}
	return c.limiter.seen.HasSeen(ctx, u)
}
