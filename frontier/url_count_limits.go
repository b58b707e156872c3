package frontier

import (
	"context"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Scope sees one URL at a time. How many of a kind there are is judged here: the
// URLs of an origin by the store as it adds them, those of a pattern by a patternLimiter
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
	return f.hosts.check(ctx, u)
}
