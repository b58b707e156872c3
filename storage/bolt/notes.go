package bolt

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// ReadNote implements storage.Store.
func (s *Store) ReadNote(ctx context.Context, name decorum.Origin, key string) (value []byte, err error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer s.trimUnlockAndCommitIfDue()
	err = s.file.view(func(tx *bbolt.Tx) error {
		o, err := s.index.find(tx, name)
		if o == nil || err != nil {
			return err
		}
		for _, c := range o.pendingLayers() {
			if v, ok := c.notes[key]; ok {
				value = bytes.Clone(v)
				return nil
			}
		}
		v, err := openChecksummedBucket(tx, bucketNotes).get(appendNoteKey(nil, o.number, key))
		if err != nil {
			return s.damage.errorf("note %q of %v: %v", key, name, err)
		}
		value = bytes.Clone(v)
		return nil
	})
	return value, err
}

// SetNote implements storage.Store.
func (s *Store) SetNote(ctx context.Context, name decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, the most is %d", key, name, len(value), storage.MaxNoteBytes)
	}
	return s.lockStoreAndChangeOrigin(ctx, name, func(o *loadedOrigin) {
		s.journal.setNote(o, key, value)
	})
}
