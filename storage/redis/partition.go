package redis

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// hashSlots is how many hash slots a cluster has (Redis Cluster specification).
const hashSlots = 16384

// A partition is a share of the hosts: all its keys have one hash tag, so that
// they are in one slot, and a script may use all of them.
type partition struct {
	keyPrefix string // begins its keys
	slot      int64

	mu                     sync.Mutex
	summary                partitionSummary
	summaryReplySeq        uint64        // when sum was received, as Store.replySeq counts
	unreachable            bool          // its server did not answer last time
	maxLeaseTTL            time.Duration // so long leases are announced
	leftToOthersUntil      int64         // until then hosts that come due are left to others
	lastLeaseReplicationID int64         // under which the last leases were given; 0: none were, as far as is known
}

// makePartitions returns n partitions whose slots are spread evenly over all: the
// tag of each is the first number whose slot is in its share of them.
func makePartitions(prefix string, n int) []*partition {
	partitions := make([]*partition, n)
	for found, tag := 0, 0; found < n; tag++ {
		name := strconv.Itoa(tag)
		slot := int64(slotOf(name))
		p := int(slot) * n / hashSlots
		if partitions[p] == nil {
			partitions[p] = &partition{keyPrefix: prefix + ":{" + name + "}:", slot: slot, summary: unknownSummary}
			found++
		}
	}
	return partitions
}

// slotOf returns the slot of a key that is all hash tag: CRC16, as XMODEM has it,
// modulo the number of slots.
func slotOf(tag string) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % hashSlots
}

// partitionOfHost returns the partition of a host.
func (s *Store) partitionOfHost(host string) *partition {
	h := fnv.New64a()
	h.Write([]byte(host))
	return s.partitions[h.Sum64()%uint64(len(s.partitions))]
}

// updateSummaryIfNewer keeps what a call said of the partition, unless something newer is known:
// calls overtake each other. began is what Store.replySeq was before the call. It reports
// whether the partition is served under another reign than before.
func (p *partition) updateSummaryIfNewer(replySeq *atomic.Uint64, startSeq uint64, new partitionSummary) (failedOver bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if new.version >= p.summary.version || p.summaryReplySeq <= startSeq || p.unreachable {
		p.summary, p.summaryReplySeq, p.unreachable = new.withUpcomingHostsDeferred(p.leftToOthersUntil), replySeq.Add(1), false
	}
	failedOver = p.lastLeaseReplicationID != 0 && new.lastLeaseReplicationID != p.lastLeaseReplicationID
	p.lastLeaseReplicationID = new.lastLeaseReplicationID
	return failedOver
}

// leaveUpcomingHostsToOthers leaves hosts that come due before a time to other processes. Those that are due
// already it does not: nobody else may have a worker for them.
func (p *partition) leaveUpcomingHostsToOthers(until int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leftToOthersUntil = until
	p.summary = p.summary.withUpcomingHostsDeferred(until)
}

// markUnreachable notes that the server of the partition does not answer.
func (p *partition) markUnreachable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unreachable = true
}

// lastPartitionSummary returns what was said last of the partition, and false if its server did
// not answer since.
func (p *partition) lastPartitionSummary() (partitionSummary, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summary, !p.unreachable
}

// recordedMaxLeaseTTL returns how long leases may run as the partition has noted it.
func (p *partition) recordedMaxLeaseTTL() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.maxLeaseTTL
}

// raiseCachedMaxLeaseTTL keeps that the partition has noted, and a replica, how long leases may run.
func (p *partition) raiseCachedMaxLeaseTTL(ttl time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.maxLeaseTTL = max(p.maxLeaseTTL, ttl)
}

// maxParallelCalls is how many calls one call of the Store has under way at a time.
const maxParallelCalls = 16

// inParallel calls do for each of all, some at a time, and returns the first error.
func inParallel[T any](ctx context.Context, all []T, do func(T) error) error {
	if len(all) == 1 {
		return do(all[0])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(maxParallelCalls, len(all)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				if err := do(all[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
