package gate

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum"
)

// A noteID identifies a note.
type noteID struct {
	origin decorum.Origin
	key    string
}

// A memoryNotes stores notes in memory and counts the calls.
type memoryNotes struct {
	mu      sync.Mutex // guards notes, reads and writes
	notes   map[noteID][]byte
	reads   int
	writes  int
	failing bool // all calls fail; set only while no goroutine calls
}

func newMemoryNotes() *memoryNotes { return &memoryNotes{notes: make(map[noteID][]byte)} }

var errNotesFailed = errors.New("disk is gone")

func (n *memoryNotes) ReadNote(_ context.Context, o decorum.Origin, key string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	if n.failing {
		return nil, errNotesFailed
	}
	return slices.Clone(n.notes[noteID{o, key}]), nil
}

func (n *memoryNotes) SetNote(_ context.Context, o decorum.Origin, key string, value []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes++
	if n.failing {
		return errNotesFailed
	}
	n.notes[noteID{o, key}] = slices.Clone(value)
	return nil
}
