package robots

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum"
)

// noteAt is where a note is kept.
type noteAt struct {
	origin decorum.Origin
	key    string
}

// A notebook keeps notes in memory, and counts.
type notebook struct {
	mu     sync.Mutex
	notes  map[noteAt][]byte
	reads  int
	writes int
	broken bool
}

func newNotebook() *notebook { return &notebook{notes: make(map[noteAt][]byte)} }

var errBroken = errors.New("disk is gone")

func (n *notebook) ReadNote(_ context.Context, o decorum.Origin, key string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	if n.broken {
		return nil, errBroken
	}
	return slices.Clone(n.notes[noteAt{o, key}]), nil
}

func (n *notebook) SetNote(_ context.Context, o decorum.Origin, key string, value []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes++
	if n.broken {
		return errBroken
	}
	n.notes[noteAt{o, key}] = slices.Clone(value)
	return nil
}
