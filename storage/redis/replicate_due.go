package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/decorum-crawler/decorum/storage"
)

// A server that takes over may not know of the last acks. For the rests that hosts owe to
// these the fence makes up, but for longer ones: they are said again, until a replica has
// confirmed them.

// outlastsFence reports whether an ack has its host rest for longer than the fence of a
// server that takes over holds at least.
func (s *Store) outlastsFence(a *storage.Ack) bool {
	if a.Host == nil {
		return false
	}
	fence := s.partition(a.Lease.URL.Origin().Host()).announced()
	return a.Host.Gap > fence || s.clock.untilDue(a.Host) > fence
}

// owe has replicas confirm the rests that acks have earned their hosts.
func (s *Store) owe(ctx context.Context, acks []*storage.Ack) error {
	batches := s.batches(len(acks), func(i int) (string, []string) {
		name, h := acks[i].Lease.URL.Origin().Host(), acks[i].Host
		return name, []string{name, s.clock.out(h.Due), strconv.FormatInt(lengthOf(h.Gap), 10)}
	})
	err := s.send(ctx, batches, true, oweScript, nil, func(int, byte, bool) error { return nil })
	if err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}
