package coord

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// SharedValues are a few named values that all processes with the store open can read and set. They
// are stored together in the first partition. redis.Store.SharedValues returns them.
type SharedValues struct{ client *client.Client }

// NewSharedValues returns the values that the servers of c store.
func NewSharedValues(c *client.Client) *SharedValues { return &SharedValues{c} }

// CompareAndSet sets the named value; an empty value deletes it. If old is not empty, it does so only
// if the current value is old. It reports whether it has set the value, which is then as durable as
// what Store.Add adds. If a reply was lost, the change counts as made.
func (s *SharedValues) CompareAndSet(ctx context.Context, name, value, old string) (stored bool, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	version := strconv.FormatUint(rand.Uint64(), 36) // random: set_shared_value.lua says why
	first := s.client.Partitions()[0]
	reply, retried, err := s.client.RunUpdate(ctx, first, true, lua.SetSharedValue, name, value, old, version)
	if err != nil {
		return false, fmt.Errorf("set shared value: %w", err)
	}
	return reply == "1" || retried, nil
}

// ReadIfChanged returns all values and their version, or nil values if the current version is the given
// one. The version is empty until a value is set. ReadIfChanged asks once: it returns an error if the
// server does not answer.
func (s *SharedValues) ReadIfChanged(
	ctx context.Context, version string,
) (values map[string]string, newVersion string, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, "", err
	}
	defer end()
	m, err := s.client.TryQuery(ctx, s.client.Partitions()[0], lua.GetSharedValues, version)
	if err != nil {
		return nil, "", fmt.Errorf("read shared values: %w", err)
	}
	f := client.NewReplyReader(m)
	newVersion = f.ReadString()
	list, _ := f.ReadElement()
	if f.Err() != nil {
		return nil, "", f.Err()
	}
	if list.IsNil() { // the version has not changed
		return nil, newVersion, nil
	}
	if values, err = list.AsStrMap(); err != nil {
		return nil, "", client.ErrBadReply
	}
	return values, newVersion, nil
}
