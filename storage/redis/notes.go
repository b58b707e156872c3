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

// noteCacheTTL bounds how long a note is kept in memory, whatever the servers say.
const noteCacheTTL = time.Minute

// noteStore keeps the notes of origins on the servers, and those that were read in memory.
type noteStore struct{ client *client.Client }

// ReadNote implements storage.Store. What was read before is in memory, until the server
// says that one of the origin's notes has changed, or the connection to it is lost: a
// connection that is silent for a second is asked for a sign of life, and is lost after
// Options.Timeout.
func (n *noteStore) ReadNote(ctx context.Context, o decorum.Origin, key string) (value []byte, err error) {
	ctx, end, err := n.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	return n.get(ctx, o, key)
}

// get is ReadNote within a call that has begun.
func (n *noteStore) get(ctx context.Context, o decorum.Origin, key string) (value []byte, err error) {
	return n.client.CachedHashField(ctx, n.client.PartitionOfHost(o.Host()), notesKey(o), key, noteCacheTTL)
}

// OriginNotes implements storage.Inspector, one value at a time: they may be large.
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
		if value != nil && !yield(key, value) {
			return nil
		}
	}
	return nil
}

// SetNote implements storage.Store. Who leases a URL after it was acked by who set a
// note of its origin before reads that note: by the connection by which it is told of
// the lease it was told of the note before.
func (n *noteStore) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, o, len(value), storage.MaxNoteBytes)
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
	// The call may have gone by a connection of its own. When the one that reads notes
	// has answered, it has told that the note is another, too.
	return n.client.AwaitInvalidation(ctx, p, notesKey(o))
}

// notesKey returns the key of the notes of an origin, in its partition.
func notesKey(o decorum.Origin) string { return "n:" + originKeyPart(o) }

// originKeyPart returns what stands for an origin in keys: nothing for the zero one.
func originKeyPart(o decorum.Origin) string {
	if o.IsZero() {
		return ""
	}
	return o.String()
}
