package redis

import (
	"context"
	"fmt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A server that takes over may not know of the last acks. For the rests that hosts owe to
// these the fence makes up, but for longer ones: they are said again, until a replica has
// confirmed them.

// mustReplicateHostDue reports whether an ack has its host rest for longer than the fence of a
// server that takes over holds at least.
func (s *Store) mustReplicateHostDue(a *storage.Ack) bool {
	if a.HostState == nil {
		return false
	}
	failoverDelay := s.leaseTTLs.maxTTL(s.client.partitionOfHost(a.Lease.URL.Origin().Host()))
	return a.HostState.LostVisitDelay > failoverDelay || s.client.Clock().until(a.HostState.Due) > failoverDelay
}

// replicateDueTimes has replicas confirm the rests that acks have earned their hosts.
func (s *Store) replicateDueTimes(ctx context.Context, acks []*storage.Ack) error {
	batches := s.client.Partitions().batches(len(acks), func(i int) (string, []string) {
		name, h := acks[i].Lease.URL.Origin().Host(), acks[i].HostState
		return name, []string{name, s.client.Clock().timeArg(h.Due), durationArg(h.LostVisitDelay)}
	})
	err := s.client.sendBatches(ctx, batches, true, lua.ConfirmDue, nil, func(int, byte, bool) error { return nil })
	if err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}
