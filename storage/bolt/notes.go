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

// NoteStore keep values by origin and key in a file, and read back nothing else of it. The file has
// the layout of a Store's: what either wrote, the other reads. Use OpenNotes. All methods may be
// called at the same time.
type NoteStore struct{ noteTable }

var _ storage.NoteStore = (*NoteStore)(nil)

// OpenNotes opens the notes at path, and makes the file if there is none. Only one process can
// have it open. Of opts it uses none that are about queues. Close must be called in the end.
func OpenNotes(path string, opts Options) (*NoteStore, error) {
	e, _, _, err := openEngine(path, opts)
	if err != nil {
		return nil, err
	}
	e.start()
	return &NoteStore{noteTable{e}}, nil
}

// Close flushes and closes.
func (n *NoteStore) Close() error { return n.close(func() {}) }

// A noteTable holds the notes of origins. Its methods, and those of the engine that are exported, are
// those that a Store and NoteStore have in common.
type noteTable struct{ *engine }

// ReadNote returns what SetNote kept for the origin under key, nil if nothing.
func (n noteTable) ReadNote(ctx context.Context, name decorum.Origin, key string) (value []byte, err error) {
	err = n.engine.view(ctx, func(tx *bbolt.Tx) error {
		o, err := n.engine.index.find(tx, name)
		if o == nil || err != nil {
			return err
		}
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

// SetNote keeps value, of at most storage.MaxNoteBytes bytes; nil deletes.
func (n noteTable) SetNote(ctx context.Context, name decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, name, len(value), storage.MaxNoteBytes)
	}
	return n.engine.changeOrigin(ctx, name, func(o *residentOrigin) {
		n.engine.journal.setNote(o, key, value)
	})
}

// OriginNotes calls yield with what SetNote kept for an origin, in no order, until yield returns
// false. yield must not call n. First come those that are not checkpointed.
func (n noteTable) OriginNotes(
	ctx context.Context, name decorum.Origin, yield func(key string, value []byte) bool,
) error {
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

// OriginNames calls yield with the origins that notes were ever set for, in no order, until yield
// returns false. The zero Origin is not one. yield must not call n.
func (n noteTable) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return forEachOrigin(ctx, n.engine, yield, func(tx *bbolt.Tx, number uint32) (decorum.Origin, bool, error) {
		name, err := n.engine.index.name(tx, number)
		return name, !name.IsZero(), err
	})
}
