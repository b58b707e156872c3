package storage

import (
	"context"

	"github.com/decorum-crawler/decorum"
)

// Notes keeps values by origin and key: robots.txt records, cookies and other state that parts of a
// crawl keep between runs. The zero Origin has the values that belong to the crawl itself. Calls
// take effect in their order.
type Notes interface {
	// ReadNote returns the value that SetNote set for the origin and key, nil without a value.
	// The result belongs to the caller.
	ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error)
	// SetNote sets a value of at most MaxNoteBytes bytes, and copies it. A nil value deletes the
	// note; an empty one is kept.
	SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error
}

// A NoteStore keeps Notes and lists them for exports. Every Store that is also an Inspector and an
// OriginLister implements it.
type NoteStore interface {
	Notes
	OriginLister
	// OriginNotes calls yield with each note of an origin, in no particular order, until yield
	// returns false. yield must not call the NoteStore.
	OriginNotes(ctx context.Context, o decorum.Origin, yield func(key string, value []byte) bool) error
	// Flush makes all earlier calls durable.
	Flush(ctx context.Context) error
	// Close flushes and closes the NoteStore.
	Close() error
}
