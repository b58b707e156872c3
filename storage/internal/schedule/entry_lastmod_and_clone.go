package schedule

import (
	"bytes"
	"time"

	"github.com/decorum-crawler/decorum/storage"
)

// NoteLastmod sets SitemapLastmod of e to a sitemap's modification time. It returns false, and changes
// nothing, if the page was visited at that time or later. It replaces the VisitHistorySummary of e by a
// changed copy, since other entries may share the old one.
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

// CloneEntry returns e with copies of the data that its holder may change.
func CloneEntry(e storage.Entry) storage.Entry {
	e.CallbackData = bytes.Clone(e.CallbackData)
	if e.VisitHistorySummary != nil {
		e.VisitHistorySummary = new(*e.VisitHistorySummary)
	}
	return e
}
