package frontier

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Scope sees one URL at a time. How many of a kind there are is judged here: the
// URLs of an origin by the store as it adds them, those of a pattern before,
// where there may be too many, and counted when they are known to be new.

// isSubjectToCountLimits reports whether limits on how many there are hold for e. What a person
// named, and the crawl's own errands, pass by them.
func (f *Frontier) isSubjectToCountLimits(e *storage.Entry) bool {
	return f.cfg.Scope != nil && e.Source != storage.SourceSeed && e.Source != storage.SourcePrerequisite
}

// addLimited adds the entries for which there is room, and counts them.
func (f *Frontier) addLimited(ctx context.Context, entries []storage.Entry) (added int, err error) {
	if entries, err = f.applyPatternLimit(ctx, entries); err != nil {
		return 0, err
	}
	results, err := f.store.Add(ctx, entries, f.cfg.Scope.cfg.MaxURLsPerHost)
	f.recentURLs.addStored(entries, results)
	f.notifyDiscovered(entries, results)
	for i, result := range results {
		e := &entries[i]
		switch result {
		case storage.Added:
			added++
			f.patternCounts.addURL(entryPatternKey(e))
		case storage.OverLimit:
			f.countAndReportRefusal(*e, f.cfg.Scope.newHostURLLimitError(e.URL))
		}
	}
	return added, err
}

// applyPatternLimit refuses those of the entries that are one too many of their pattern, and
// returns the others. Mostly no pattern is near its limit.
func (f *Frontier) applyPatternLimit(ctx context.Context, entries []storage.Entry) ([]storage.Entry, error) {
	c := patternLimitChecker{frontier: f, maxURLs: f.cfg.Scope.cfg.MaxURLsPerPattern, batchSize: len(entries)}
	if f.patternCounts.highestCount()+c.batchSize <= c.maxURLs {
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
			f.countAndReportRefusal(e, outOfScopeError(e.URL, newRefusal(TooManyPatternURLs, "more than %d URLs as %s", c.maxURLs, pattern)))
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

// A patternLimitChecker judges the entries of one call by how many URLs there are of their
// patterns.
type patternLimitChecker struct {
	frontier          *Frontier
	maxURLs           int // URLs of a pattern
	batchSize         int // entries of the call
	acceptedByPattern map[uint64]int
	offeredURLs       map[decorum.URL]bool
}

// countNewURLAgainstLimit reports whether e is new and there are all the URLs of its kind that
// there may be.
func (c *patternLimitChecker) countNewURLAgainstLimit(ctx context.Context, e *storage.Entry) (bool, error) {
	key := entryPatternKey(e)
	if key == 0 {
		return false, nil
	}
	capacity := c.maxURLs - c.frontier.patternCounts.urlCount(key)
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
func (c *patternLimitChecker) addURLAndReportKnown(ctx context.Context, u decorum.URL) (bool, error) {
	if c.offeredURLs == nil {
		c.acceptedByPattern, c.offeredURLs = map[uint64]int{}, map[decorum.URL]bool{}
	}
	if c.offeredURLs[u] {
		return true, nil
	}
	c.offeredURLs[u] = true
	store, ok := c.frontier.store.(storage.Inspector)
	if !ok {
		return false, nil // what is met again counts again: the limit comes sooner
	}
	return store.HasSeen(ctx, u)
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
	return f.checkHostLimits(ctx, u)
}
