package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
)

// ReadNote implements storage.Store.
func (m *Store) ReadNote(ctx context.Context, o decorum.Origin, key string) ([]byte, error) {
	if err := m.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	origin := m.origins[o]
	if origin == nil {
		return nil, nil
	}
	return bytes.Clone(origin.notes[key]), nil
}

// SetNote implements storage.Store.
func (m *Store) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	if len(value) > storage.MaxNoteBytes {
		return fmt.Errorf("note %s of %v: %d bytes, at most %d are allowed", key, o, len(value), storage.MaxNoteBytes)
	}
	if err := m.lockIfOpen(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	origin := m.getOrCreateOrigin(o)
	if value == nil {
		delete(origin.notes, key)
		return nil
	}
	if origin.notes == nil {
		origin.notes = make(map[string][]byte)
	}
	origin.notes[key] = bytes.Clone(value)
	return nil
}
