package coord

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// SharedValues are a few values by name that all processes read which have the store
// open. They are in the first partition, as a whole.
type SharedValues struct{ client *client.Client }

// NewSharedValues returns the values that are kept by the servers of c.
func NewSharedValues(c *client.Client) *SharedValues { return &SharedValues{c} }

// CompareAndSet sets a value, for good; an empty one deletes it. If old is not empty, it
// does so only while the value is old, and reports whether it did. When it returns, the
// value is as safe as what Store.Add adds. A change whose answer was lost counts as made.
func (s *SharedValues) CompareAndSet(ctx context.Context, name, value, old string) (stored bool, err error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	version := strconv.FormatUint(rand.Uint64(), 36)
	first := s.client.Partitions()[0]
	reply, retried, err := s.client.RunUpdate(ctx, first, true, lua.SetSharedValue, name, value, old, version)
	if err != nil {
		return false, fmt.Errorf("post: %w", err)
	}
	return reply == "1" || retried, nil
}

// ReadIfChanged returns all values and their version; nil if the version is the given one.
// Before any value was set, the version is empty. It asks once: a server that does not
// answer is an error.
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
		return nil, "", fmt.Errorf("board: %w", err)
	}
	f := client.NewReplyReader(m)
	newVersion = f.ReadString()
	list, _ := f.ReadElement()
	if f.Err() != nil {
		return nil, "", f.Err()
	}
	if list.IsNil() {
		return nil, newVersion, nil
	}
	if values, err = list.AsStrMap(); err != nil {
		return nil, "", client.ErrBadReply
	}
	return values, newVersion, nil
}
