package redis

import (
	"context"
	"fmt"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A server that takes over may not know of the last acks. The fence makes up for the delays
// after these, unless they are longer: those are sent again, until a replica has confirmed
// them.

// mustReplicateHostDue reports whether an ack delays its host for longer than a server that
// takes over gives nothing out.
func (h *leaseHolder) mustReplicateHostDue(a *storage.Ack) bool {
	if a.HostState == nil {
		return false
	}
	failoverDelay := h.ttls.maxTTL(h.client.PartitionOfHost(a.Lease.URL.Origin().Host()))
	return a.HostState.LostVisitDelay > failoverDelay || h.client.Clock().Until(a.HostState.Due) > failoverDelay
}

// replicateDueTimes has replicas confirm the due times that acks have given their hosts.
func (h *leaseHolder) replicateDueTimes(ctx context.Context, acks []*storage.Ack) error {
	batches := h.client.Partitions().Batches(len(acks), func(i int) (string, []string) {
		name, state := acks[i].Lease.URL.Origin().Host(), acks[i].HostState
		return name, []string{name, h.client.Clock().TimeArg(state.Due), client.DurationArg(state.LostVisitDelay)}
	})
	err := h.client.SendBatches(ctx, batches, true, lua.ConfirmDue, nil, func(int, byte, bool) error { return nil })
	if err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}
