package frontier

import (
	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// seenCache remembers URLs that are in the seen set: links that are on each page of a
// site need neither be judged nor looked up again. Nothing that is seen is ever unseen,
// unless the store has lost it.
type seenCache struct{ boundedTextSet }

// maxRecentURLs is how many URLs are remembered.
const maxRecentURLs = 1 << 17

// addStored remembers the entries that the store has, to judge by what became of them. They
// are clean, but for the crawl's own errands.
func (f *seenCache) addStored(entries []storage.Entry, results []storage.AddOutcome) {
	for i, result := range results {
		e := &entries[i]
		if result == storage.OverLimit || e.Request != nil || e.Source == storage.SourcePrerequisite {
			continue
		}
		f.add(e.URL.String())
	}
}

// WasRecentlyOffered reports whether u was offered lately, so that to offer it as a link again
// would change nothing: it would still be queued under the same name. It is quick, and
// asks nobody: false says nothing.
func (f *Frontier) WasRecentlyOffered(u decorum.URL) bool {
	return f.recentURLs.contains(u.String()) && (f.cfg.CleanURL == nil || f.cfg.CleanURL(u) == u) && f.httpsUpgrades.isKnownToStayHTTP(u)
}
