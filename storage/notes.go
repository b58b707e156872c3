package storage

import (
	"context"

	"github.com/decorum-crawler/decorum"
)

// Notes keeps values, each for an origin and under a key. The zero Origin has the values that
// belong to the crawl itself. Calls take effect in their order.
type Notes interface {
	// ReadNote returns what SetNote kept for the origin under key, nil if nothing.
	ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error)
	// SetNote keeps value, of at most MaxNoteBytes bytes; nil deletes.
	SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error
}

// A NoteStore keeps Notes, and lists them for exports. Every Store that is an Inspector and an
// OriginLister is one.
type NoteStore interface {
	Notes
	OriginLister
	// OriginNotes calls yield with what SetNote kept for an origin, in no order, until yield
	// returns false. yield must not call the NoteStore.
	OriginNotes(ctx context.Context, o decorum.Origin, yield func(key string, value []byte) bool) error
	// Flush makes all earlier calls durable.
	Flush(ctx context.Context) error
	// Close flushes and closes.
	Close() error
}
