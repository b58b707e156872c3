package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// noteCacheTTL is how long a note stays in memory at most, even if no server reports a change.
const noteCacheTTL = time.Minute

// noteStore stores the notes of origins on the servers, and caches in memory those that were read.
type noteStore struct{ client *client.Client }

// ReadNote implements storage.Store. It returns a cached note until the server reports that a note
// of the origin has changed, or the connection is lost. A connection that is silent for one second
// is pinged, and is lost after Options.Timeout.
func (n *noteStore) ReadNote(ctx context.Context, o decorum.Origin, key string) (value []byte, err error) {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return n.get(ctx, o, key)
}

// get is ReadNote without BeginCall: the caller has begun a call.
func (n *noteStore) get(ctx context.Context, o decorum.Origin, key string) (value []byte, err error) {
	return n.client.CachedHashField(ctx, n.client.PartitionOfHost(o.Host()), notesKey(o), key, noteCacheTTL)
}

// OriginNotes implements storage.Inspector. It reads one value at a time, because notes may be large.
func (n *noteStore) OriginNotes(
	ctx context.Context, o decorum.Origin, yield func(key string, value []byte) bool,
) error {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	keys, err := n.client.HashFieldNames(ctx, n.client.PartitionOfHost(o.Host()), notesKey(o))
	if err != nil {
		return err
	}
	for _, key := range keys {
		value, err := n.get(ctx, o, key)
		if err != nil {
			return err
		}
		// A nil value means that the note was deleted after the names were read.
		if value != nil && !yield(key, value) {
			return nil
		}
	}
	return nil
}

// SetNote implements storage.Store. A process that leases a URL reads all notes of its origin that
// were set before another process acked or added that URL: the connection that delivers the lease
// has delivered the report of the changed notes before.
func (n *noteStore) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, at most %d are allowed", key, o, len(value), storage.MaxNoteBytes)
	}
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	args := []string{originKeyPart(o), o.Host(), key}
	if value != nil {
		args = append(args, string(value))
	}
	p := n.client.PartitionOfHost(o.Host())
	if _, _, err = n.client.RunUpdate(ctx, p, true, lua.SetNote, args...); err != nil {
		return err
	}
	// The call may have used another connection than the one that reads notes. When that one has
	// answered a command, it has reported the changed note, too.
	return n.client.AwaitInvalidation(ctx, p, notesKey(o))
}

// notesKey returns the key of the notes of an origin, without the prefix of its partition.
func notesKey(o decorum.Origin) string { return "n:" + originKeyPart(o) }

// originKeyPart returns the name of an origin in keys: empty for the zero Origin.
func originKeyPart(o decorum.Origin) string {
	if o.IsZero() {
		return ""
	}
	return o.String()
}
