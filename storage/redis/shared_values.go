package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/redis/rueidis"
)

// A store has a board: a few values by name that all processes read which have the
// store open. It is in the first partition, as a whole.

// SetSharedValue puts a value on the board, for good; empty takes it off. If was is not empty,
// it does so only while the board holds that, and reports whether it did. When it
// returns, the value is as safe as what Add adds. A post whose answer was lost counts
// as made.
func (s *Store) SetSharedValue(ctx context.Context, name, value, was string) (posted bool, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	version := strconv.FormatUint(rand.Uint64(), 36)
	said, again, err := s.call(ctx, s.partitions[0], true, postScript, name, value, was, version)
	if err != nil {
		return false, fmt.Errorf("post: %w", err)
	}
	return said == "1" || again, nil
}

// SharedValues returns what is on the board, by name, and its version; nil if that is the one
// which is given. Before anything was put on it, that is empty. It asks once: a server
// that does not answer is an error.
func (s *Store) SharedValues(ctx context.Context, version string) (board map[string]string, newest string, err error) {
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, "", err
	}
	defer end()
	m, err := s.try(ctx, s.partitions[0], boardScript, version)
	if err != nil {
		return nil, "", fmt.Errorf("board: %w", err)
	}
	return readBoard(m)
}

// readBoard reads what get_shared_values.lua returns.
func readBoard(m rueidis.RedisMessage) (board map[string]string, version string, err error) {
	f := fieldsOf(m)
	version = f.string()
	list, ok := f.next()
	if f.err != nil || !ok {
		return nil, "", errAnswer
	}
	if list.IsNil() {
		return nil, version, nil
	}
	if board, err = list.AsStrMap(); err != nil {
		return nil, "", errAnswer
	}
	return board, version, nil
}
