package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// A NoteStore keeps values by origin and key in a file. The file has the layout of a Store's file, and
// a Store and a NoteStore read each other's notes. Use OpenNotes. All methods may be called
// concurrently.
type NoteStore struct{ noteTable }

var _ storage.NoteStore = (*NoteStore)(nil)

// OpenNotes opens the notes at path and creates the file if it does not exist. Only one process can
// have it open. The options about queues have no effect. The caller must call Close.
func OpenNotes(path string, opts Options) (*NoteStore, error) {
	e, _, _, err := openEngine(path, opts)
	if err != nil {
		return nil, err
	}
	e.start()
	return &NoteStore{noteTable{e}}, nil
}

// Close flushes and closes the NoteStore.
func (n *NoteStore) Close() error { return n.close(func() {}) }

// A noteTable reads and sets notes. Its methods and the exported methods of the engine are those that
// Store and NoteStore have in common.
type noteTable struct{ *engine }

// ReadNote returns the value that SetNote set for the origin and key, nil without a value.
func (n noteTable) ReadNote(ctx context.Context, name decorum.Origin, key string) (value []byte, err error) {
	err = n.engine.view(ctx, func(tx *bbolt.Tx) error {
		o, err := n.engine.index.find(tx, name)
		if o == nil || err != nil {
			return err
		}
		// A pending change, even a deletion, takes precedence over the file.
		for _, c := range o.pendingLayers() {
			if v, ok := c.notes[key]; ok {
				value = bytes.Clone(v)
				return nil
			}
		}
		v, err := newChecksummedBucket(tx, bucketNotes).get(appendNoteKey(nil, o.number, key))
		if err != nil {
			return n.engine.damage.errorf("note %q of %v: %v", key, name, err)
		}
		value = bytes.Clone(v)
		return nil
	})
	return value, err
}

// SetNote sets a value of at most storage.MaxNoteBytes bytes. A nil value deletes the note.
func (n noteTable) SetNote(ctx context.Context, name decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, at most %d are allowed", key, name,
			len(value), storage.MaxNoteBytes)
	}
	return n.engine.changeOrigin(ctx, name, func(o *residentOrigin) {
		n.engine.journal.setNote(o, key, value)
	})
}

// OriginNotes calls yield with each note of an origin, in no particular order, until yield returns
// false. yield must not call n.
func (n noteTable) OriginNotes(
	ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool,
) error {
	// Copy the notes that are not checkpointed, and yield them first.
	pending := make(map[string][]byte)
	err := n.engine.viewOrigin(ctx, name, func(_ *bbolt.Tx, o *residentOrigin) {
		for _, layer := range slices.Backward(o.pendingLayers()) {
			maps.Copy(pending, layer.notes)
		}
	})
	if err != nil {
		return err
	}
	for key, value := range pending {
		if value != nil && !yield(key, bytes.Clone(value)) {
			return nil
		}
	}
	// Then yield the notes of the file, except those that a pending change replaces.
	var damage error
	err = n.engine.forEachValueOfOrigin(ctx, name, bucketNotes, func(key, value []byte, err error) bool {
		key = key[4:]
		if _, isPending := pending[string(key)]; isPending {
			return true
		}
		if err != nil {
			damage = n.engine.damage.errorf("note %q of %v: %v", key, name, err)
			return false
		}
		return yield(string(key), value)
	})
	return errors.Join(err, damage)
}

// OriginNames calls yield with each origin in the file, whether or not it has notes now, in no
// particular order, until yield returns false. It omits the zero Origin. yield must not call n.
func (n noteTable) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return forEachOrigin(ctx, n.engine, yield, func(tx *bbolt.Tx, number uint32) (decorum.Origin, bool, error) {
		name, err := n.engine.index.name(tx, number)
		return name, !name.IsZero(), err
	})
}
