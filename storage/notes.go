package storage

import (
	"context"

	"github.com/decorum-crawler/decorum"
)

// Notes are values that are kept by origin and key, for those who remember something of an
// origin. The zero Origin has notes, too: a crawl's own.
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
