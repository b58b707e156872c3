package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A store has a board: a few values by name that all processes read which have the
// store open. It is in the first partition, as a whole.

// SetSharedValue puts a value on the board, for good; empty takes it off. If was is not empty,
// it does so only while the board holds that, and reports whether it did. When it
// returns, the value is as safe as what Add adds. A post whose answer was lost counts
// as made.
func (s *Store) SetSharedValue(ctx context.Context, name, value, old string) (stored bool, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	version := strconv.FormatUint(rand.Uint64(), 36)
	reply, retried, err := s.client.RunUpdate(ctx, s.client.Partitions()[0], true, lua.SetSharedValue, name, value, old, version)
	if err != nil {
		return false, fmt.Errorf("post: %w", err)
	}
	return reply == "1" || retried, nil
}

// SharedValuesIfChanged returns what is on the board, by name, and its version; nil if that is the one
// which is given. Before anything was put on it, that is empty. It asks once: a server
// that does not answer is an error.
func (s *Store) SharedValuesIfChanged(ctx context.Context, version string) (values map[string]string, newVersion string, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, "", err
	}
	defer end()
	m, err := s.client.TryQuery(ctx, s.client.Partitions()[0], lua.GetSharedValues, version)
	if err != nil {
		return nil, "", fmt.Errorf("board: %w", err)
	}
	return parseSharedValues(m)
}

// parseSharedValues reads what get_shared_values.lua returns.
func parseSharedValues(m client.Reply) (values map[string]string, version string, err error) {
	f := client.NewReplyReader(m)
	version = f.ReadString()
	list, ok := f.ReadElement()
	if f.Err() != nil || !ok {
		return nil, "", client.ErrBadReply
	}
	if list.IsNil() {
		return nil, version, nil
	}
	if values, err = list.AsStrMap(); err != nil {
		return nil, "", client.ErrBadReply
	}
	return values, version, nil
}
