package frontier

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A Scope checks one URL at a time. The limits in this file count URLs. The store enforces the limit
// of an origin when it adds URLs. A urlCountLimiter enforces the limit of a pattern, or of another group
// of URLs of a host, before that, where the group may be near its limit, and counts the URLs that the
// store reports as new.

// The CallbackData of an entry of storage.SourceFeed that is a feed itself. A feed lists the other
// entries of that source.
const (
	AnnouncedFeed = "feed"      // a page announces it as a feed: ScopeConfig.MaxFeedsPerHost counts it
	FeedPart      = "feed part" // a feed names it as a further part of itself
)

// isSubjectToCountLimits reports whether the limits of how many URLs there are apply to e. Seeds,
// which a person named, and prerequisites are exempt.
func (f *Frontier) isSubjectToCountLimits(e *storage.Entry) bool {
	return f.cfg.Scope != nil && e.Source != storage.SourceSeed && e.Source != storage.SourcePrerequisite
}

// addLimited adds the entries within the limits, and returns how many were new.
func (f *Frontier) addLimited(ctx context.Context, entries []storage.Entry) (added int, err error) {
	for _, l := range f.countLimiters {
		if entries, err = l.filter(ctx, entries); err != nil {
			return 0, err
		}
	}
	results, err := f.addToStore(ctx, entries, f.cfg.Scope.cfg.MaxURLsPerHost)
	for i, result := range results {
		e := &entries[i]
		switch result {
		case storage.Added:
			added++
			for _, l := range f.countLimiters {
				l.counts.addURL(l.groupKey(e))
			}
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

// A urlCountLimiter refuses URLs beyond a limit of each group of URLs.
type urlCountLimiter struct {
	maxURLs int // of a group
	// groupKey returns the key of the group that an entry belongs to; 0 if the entry is not counted.
	groupKey func(*storage.Entry) uint64
	// newRefusal returns the refusal of an entry beyond maxURLs.
	newRefusal func(e *storage.Entry, maxURLs int) *Refusal
	// seen has the seen set. If it is nil, a URL that is offered again counts again, and the limit
	// is reached earlier.
	seen     storage.Inspector
	refusals *refusalCounter // counts what filter refuses
	counts   urlGroupCounts  // URLs that the store has reported as new
}

// newURLCountLimiters returns the limiters of groups of URLs that cfg asks for, in the order in which
// they apply.
func newURLCountLimiters(cfg *ScopeConfig, store storage.Store, refusals *refusalCounter) []*urlCountLimiter {
	limiters := []*urlCountLimiter{
		{maxURLs: cfg.MaxSortLinksPerHost, groupKey: sortLinkKey, newRefusal: newSortLinkRefusal},
		{maxURLs: cfg.MaxFeedsPerHost, groupKey: announcedFeedKey, newRefusal: newFeedRefusal},
		{maxURLs: cfg.MaxURLsPerPattern, groupKey: entryPatternKey, newRefusal: newPatternRefusal},
	}
	for _, l := range limiters {
		l.seen, _ = store.(storage.Inspector)
		l.refusals = refusals
	}
	return slices.DeleteFunc(limiters, func(l *urlCountLimiter) bool { return l.maxURLs < 0 })
}

// sortLinkKey returns the key of the sort links of e's host; 0 if e is not a link that sorts.
func sortLinkKey(e *storage.Entry) uint64 {
	if e.Source != storage.SourceLink || e.Request != nil || !IsSortLink(e.Referrer, e.URL) {
		return 0
	}
	return urlGroupKey(e.URL.Origin().Host(), nil)
}

func newSortLinkRefusal(_ *storage.Entry, maxURLs int) *Refusal {
	return newRefusal(TooManySortLinks, "more than %d links of the host that sort a list", maxURLs)
}

// announcedFeedKey returns the key of the feeds of e's host; 0 if no page announces e as a feed. The
// target of a feed's redirect is not counted, because it replaces the feed.
func announcedFeedKey(e *storage.Entry) uint64 {
	if e.Source != storage.SourceFeed || string(e.CallbackData) != AnnouncedFeed || e.Redirects > 0 {
		return 0
	}
	return urlGroupKey(e.URL.Origin().Host(), nil)
}

func newFeedRefusal(_ *storage.Entry, maxURLs int) *Refusal {
	return newRefusal(TooManyFeeds, "more than %d feeds of the host that pages announce", maxURLs)
}

// entryPatternKey returns the key of e's host and pattern; 0 if e is not counted, as URLs of
// sitemaps are not.
func entryPatternKey(e *storage.Entry) uint64 {
	if e.Source == storage.SourceSitemap {
		return 0
	}
	return urlPatternKey(e.URL.Origin().Host(), e.URL.PathAndQuery())
}

func newPatternRefusal(e *storage.Entry, maxURLs int) *Refusal {
	pattern, _ := URLPattern(e.URL.PathAndQuery())
	return newRefusal(TooManyPatternURLs, "more than %d URLs as %s", maxURLs, pattern)
}

// filter refuses the entries beyond the limit of their group, and returns the others in the same
// slice.
func (l *urlCountLimiter) filter(ctx context.Context, entries []storage.Entry) ([]storage.Entry, error) {
	// Usually no group is near its limit, or the entries belong to none.
	highestCount := l.counts.highestCount()
	if highestCount+len(entries) <= l.maxURLs {
		return entries, nil
	}
	c := urlCountChecker{limiter: l}
	for i := range entries {
		if l.groupKey(&entries[i]) != 0 {
			c.batchSize++
		}
	}
	if c.batchSize == 0 || highestCount+c.batchSize <= l.maxURLs {
		return entries, nil
	}
	in := entries[:0]
	for i := range entries {
		e := &entries[i]
		exceeds, err := c.countNewURLAgainstLimit(ctx, e)
		if err != nil {
			return nil, err
		}
		if exceeds {
			l.refusals.countAndReport(*e, outOfScopeError(e.URL, l.newRefusal(e, l.maxURLs)))
			continue
		}
		in = append(in, *e)
	}
	return in, nil
}

// A urlCountChecker checks the entries of one call against the limit of their groups.
type urlCountChecker struct {
	limiter         *urlCountLimiter
	batchSize       int            // entries of the call that belong to a group
	acceptedByGroup map[uint64]int // new URLs of the call, by groupKey
	// exceedsByURL says of each URL of the call whose group is near its limit whether it exceeds it.
	exceedsByURL map[decorum.URL]bool
}

// countNewURLAgainstLimit reports whether e is new and exceeds the limit of its group. If it is
// new and within the limit, it counts e.
func (c *urlCountChecker) countNewURLAgainstLimit(ctx context.Context, e *storage.Entry) (exceeds bool, err error) {
	key := c.limiter.groupKey(e)
	if key == 0 {
		return false, nil
	}
	capacity := c.limiter.maxURLs - c.limiter.counts.urlCount(key)
	if capacity >= c.batchSize {
		return false, nil // enough even if all entries of the call are new
	}
	if exceeds, isRepeated := c.exceedsByURL[e.URL]; isRepeated {
		return exceeds, nil
	}
	known := false
	if c.limiter.seen != nil {
		if known, err = c.limiter.seen.HasSeen(ctx, e.URL); err != nil {
			return false, err
		}
	}
	if c.exceedsByURL == nil {
		c.acceptedByGroup, c.exceedsByURL = map[uint64]int{}, map[decorum.URL]bool{}
	}
	exceeds = !known && c.acceptedByGroup[key] >= capacity
	if !known && !exceeds {
		c.acceptedByGroup[key]++
	}
	c.exceedsByURL[e.URL] = exceeds
	return exceeds, nil
}
