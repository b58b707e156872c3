package schedule

import (
	"bytes"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// NoteLastmod notes that a sitemap says that the page of e was modified at a time; false if it was
// visited since. The VisitHistorySummary that e had is not changed: others may have it.
func NoteLastmod(e *storage.Entry, modified time.Time) bool {
	var history storage.VisitHistorySummary
	if e.VisitHistorySummary != nil {
		history = *e.VisitHistorySummary
	}
	if !history.VisitedAt.Before(modified) {
		return false
	}
	history.SitemapLastmod, e.VisitHistorySummary = modified, &history
	return true
}

// CloneEntry returns e with copies of what its holder may write to.
func CloneEntry(e storage.Entry) storage.Entry {
	e.CallbackData = bytes.Clone(e.CallbackData)
	if e.VisitHistorySummary != nil {
		e.VisitHistorySummary = new(*e.VisitHistorySummary)
	}
	return e
}
