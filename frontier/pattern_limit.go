package frontier

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A patternLimiter refuses URLs that are one too many of their host and pattern.
type patternLimiter struct {
	maxURLs  int               // URLs of a pattern
	seen     storage.Inspector // has the seen set; nil: what is met again counts again, and the limit comes sooner
	refusals *refusalCounter   // counts what filter refuses
	counts   patternCounts     // the URLs that are known to be new
}

// filter refuses those of the entries that are one too many of their pattern, and
// returns the others in the same slice. Mostly no pattern is near its limit.
func (l *patternLimiter) filter(ctx context.Context, entries []storage.Entry) ([]storage.Entry, error) {
	c := patternLimitChecker{limiter: l, batchSize: len(entries)}
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

// A patternLimitChecker judges the entries of one call by how many URLs there are of their
// patterns.
type patternLimitChecker struct {
	limiter           *patternLimiter
	batchSize         int                  // entries of the call
	acceptedByPattern map[uint64]int       // new URLs of the call, by urlPatternKey
	offeredURLs       map[decorum.URL]bool // URLs of the call whose pattern is near its limit
}

// countNewURLAgainstLimit reports whether e is new and there are all the URLs of its kind that
// there may be.
func (c *patternLimitChecker) countNewURLAgainstLimit(ctx context.Context, e *storage.Entry) (bool, error) {
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
func (c *patternLimitChecker) addURLAndReportKnown(ctx context.Context, u decorum.URL) (bool, error) {
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
