package frontier

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A Scope checks one URL at a time. The limits in this file count URLs. The store enforces the limit
// of an origin when it adds URLs. urlsPerPatternLimiter enforces the limit of a pattern before that,
// where the pattern may be near its limit, and counts the URLs that the store reports as new.

// isSubjectToCountLimits reports whether the limits of how many URLs there are apply to e. Seeds,
// which a person named, and prerequisites are exempt.
func (f *Frontier) isSubjectToCountLimits(e *storage.Entry) bool {
	return f.cfg.Scope != nil && e.Source != storage.SourceSeed && e.Source != storage.SourcePrerequisite
}

// addLimited adds the entries within the limits, and returns how many were new.
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

// newHostURLLimitError returns the error that refuses u because its origin has MaxURLsPerHost URLs.
func (s *Scope) newHostURLLimitError(u decorum.URL) error {
	return outOfScopeError(u, newRefusal(TooManyHostURLs, "more than %d URLs of the host", s.cfg.MaxURLsPerHost))
}

// CheckLinkAgainstCountLimits returns why a link to u, which the crawl does not know yet, would be
// refused because of the number of URLs of its origin, or of hosts. It returns nil if the link
// would not be refused, or if the store cannot count.
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

// A urlsPerPatternLimiter refuses URLs beyond the limit of their host and pattern.
type urlsPerPatternLimiter struct {
	maxURLs int // ScopeConfig.MaxURLsPerPattern
	// seen has the seen set. If it is nil, a URL that is offered again counts again, and the limit
	// is reached earlier.
	seen     storage.Inspector
	refusals *refusalCounter // counts what filter refuses
	counts   patternCounts   // URLs that the store has reported as new
}

// filter refuses the entries beyond the limit of their pattern, and returns the others in the same
// slice.
func (l *urlsPerPatternLimiter) filter(ctx context.Context, entries []storage.Entry) ([]storage.Entry, error) {
	c := urlsPerPatternChecker{limiter: l, batchSize: len(entries)}
	// Usually no pattern is near its limit.
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
			l.refusals.countAndReport(e,
				outOfScopeError(e.URL, newRefusal(TooManyPatternURLs, "more than %d URLs as %s", l.maxURLs, pattern)))
			continue
		}
		in = append(in, e)
	}
	return in, nil
}

// entryPatternKey returns the key of e's host and pattern; 0 if e is not counted, as URLs of
// sitemaps are not.
func entryPatternKey(e *storage.Entry) uint64 {
	if e.Source == storage.SourceSitemap {
		return 0
	}
	return urlPatternKey(e.URL.Origin().Host(), e.URL.PathAndQuery())
}

// A urlsPerPatternChecker checks the entries of one call against the limit of their patterns.
type urlsPerPatternChecker struct {
	limiter           *urlsPerPatternLimiter
	batchSize         int            // entries of the call
	acceptedByPattern map[uint64]int // new URLs of the call, by urlPatternKey
	// offeredURLs holds the URLs of the call whose pattern is near its limit.
	offeredURLs map[decorum.URL]bool
}

// countNewURLAgainstLimit reports whether e is new and exceeds the limit of its pattern. If it is
// new and within the limit, it counts e.
func (c *urlsPerPatternChecker) countNewURLAgainstLimit(ctx context.Context, e *storage.Entry) (bool, error) {
	key := entryPatternKey(e)
	if key == 0 {
		return false, nil
	}
	capacity := c.limiter.maxURLs - c.limiter.counts.urlCount(key)
	if capacity >= c.batchSize {
		return false, nil // enough even if all entries of the call are new
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

// addURLAndReportKnown reports whether u is in the seen set or was offered earlier in this call.
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
