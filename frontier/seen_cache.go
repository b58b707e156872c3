package frontier

import (
	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A seenCache remembers URLs that are in the seen set, so that links that occur on every page of a
// site need not be checked and looked up again. A URL stays in the seen set unless the store loses
// data.
type seenCache struct{ boundedTextSet }

// maxRecentURLs is how many URLs are remembered.
const maxRecentURLs = 1 << 17

// addStored remembers the entries that the store holds, according to results. Entries with a
// request of their own, and prerequisites, are left out, because their URLs are not cleaned.
func (f *seenCache) addStored(entries []storage.Entry, results []storage.AddOutcome) {
	for i, result := range results {
		e := &entries[i]
		if result == storage.OverLimit || e.Request != nil || e.Source == storage.SourcePrerequisite {
			continue
		}
		f.add(e.URL.String())
	}
}

// WasRecentlyOffered reports whether offering u as a link would change nothing, because u was
// offered recently and would still be queued under the same URL. It uses memory only: false means
// that Discover must decide.
func (f *Frontier) WasRecentlyOffered(u decorum.URL) bool {
	return f.recentURLs.contains(u.String()) && (f.cfg.CleanURL == nil || f.cfg.CleanURL(u) == u) &&
		f.httpsUpgrades.isKnownToStayHTTP(u)
}
