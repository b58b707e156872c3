package robots

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/decorum-crawler/decorum"
)

// A notebook keeps notes in memory, and counts.
type notebook struct {
	mu     sync.Mutex
	notes  map[decorum.Origin][]byte
	reads  int
	writes int
	broken bool
}

func newNotebook() *notebook { return &notebook{notes: make(map[decorum.Origin][]byte)} }

var errBroken = errors.New("disk is gone")

func (n *notebook) Note(_ context.Context, o decorum.Origin, key string) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reads++
	if n.broken {
		return nil, errBroken
	}
	return slices.Clone(n.notes[o]), nil
}

func (n *notebook) SetNote(_ context.Context, o decorum.Origin, key string, value []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes++
	if n.broken {
		return errBroken
	}
	n.notes[o] = slices.Clone(value)
	return nil
}
