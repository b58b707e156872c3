package bolt

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// Note implements storage.Store.
func (s *Store) Note(ctx context.Context, name decorum.Origin, key string) (value []byte, err error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	err = s.view(func(tx *bbolt.Tx) error {
		o, err := s.find(tx, name)
		if o == nil || err != nil {
			return err
		}
		for _, c := range o.layers() {
			if v, ok := c.notes[key]; ok {
				value = bytes.Clone(v)
				return nil
			}
		}
		v, err := bucketOf(tx, bucketNotes).get(appendNoteKey(nil, o.number, key))
		if err != nil {
			return s.damaged("note %q of %v: %v", key, name, err)
		}
		value = bytes.Clone(v)
		return nil
	})
	return value, err
}

// SetNote implements storage.Store.
func (s *Store) SetNote(ctx context.Context, name decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNote {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, name, len(value), storage.MaxNote)
	}
	return s.alter(ctx, name, func(o *origin) {
		s.touch(o).note(key, s.redo.note(o.number, key, value))
		s.held += sizeOf(value)
	})
}
