package client

import (
	"hash/fnv"
	"strconv"
	"sync"
	"sync/atomic"
)

// hashSlots is how many hash slots a cluster has (Redis Cluster specification).
const hashSlots = 16384

// A Partition is a share of the hosts. All its keys have one hash tag, so that they are in one hash
// slot and one script may use all of them.
type Partition struct {
	keyPrefix string // begins all its keys
	slot      int64  // the hash slot of its keys

	// mu guards summary, summaryReplySeq, unreachable, leftToOthersUntil and lastLeaseReplicationID.
	mu                     sync.Mutex
	summary                PartitionSummary
	summaryReplySeq        uint64 // Client.replySeq when summary was received
	unreachable            bool   // its server did not answer the last call
	leftToOthersUntil      int64  // see LeaveUpcomingHostsToOthers
	lastLeaseReplicationID int64  // of the last summary; 0 before the first call of lease.lua
}

// Key returns the key with a name, such as "m", in the partition.
func (p *Partition) Key(name string) string { return p.keyPrefix + name }

// Partitions are all partitions of a store, by their index.
type Partitions []*Partition

// makePartitions returns n partitions whose slots are spread evenly over all slots. The hash tag of a
// partition is the lowest number whose slot is in the partition's share of the slots.
func makePartitions(prefix string, n int) Partitions {
	partitions := make(Partitions, n)
	for found, tag := 0, 0; found < n; tag++ {
		name := strconv.Itoa(tag)
		slot := int64(slotOf(name))
		p := int(slot) * n / hashSlots
		if partitions[p] == nil {
			partitions[p] = &Partition{keyPrefix: prefix + ":{" + name + "}:", slot: slot, summary: unknownSummary}
			found++
		}
	}
	return partitions
}

// slotOf returns the hash slot of a tag: its CRC-16/XMODEM modulo the number of slots (Redis Cluster
// specification).
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

// ofHost returns the partition of a host, by FNV-1a of its name. The choice is part of the format: a
// store must be opened with the number of partitions with which it was made.
func (all Partitions) ofHost(host string) *Partition {
	h := fnv.New64a()
	h.Write([]byte(host))
	return all[h.Sum64()%uint64(len(all))]
}

// Total returns the sum of the last summaries of all partitions. complete is false if the server of
// a partition did not answer the last call.
func (all Partitions) Total() (sum PartitionSummary, complete bool) {
	sum = PartitionSummary{NextLeaseExpiry: Never, NextHoldEnd: Never, NextRevisit: Never}
	complete = true
	for _, p := range all {
		one, answers := p.LastSummary()
		sum, complete = sum.add(one), complete && answers
	}
	return sum, complete
}

// Reachable returns the number of partitions whose servers answered the last call.
func (all Partitions) Reachable() (n int) {
	for _, p := range all {
		if _, up := p.LastSummary(); up {
			n++
		}
	}
	return n
}

// cacheSummaryIfNewer keeps the summary that a call returned, unless a newer one is known, because
// replies may overtake each other. startSeq is Client.replySeq before the call. It reports whether
// the reply before had another replication id.
func (p *Partition) cacheSummaryIfNewer(replySeq *atomic.Uint64, startSeq uint64,
	new PartitionSummary) (failedOver bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if new.Version >= p.summary.Version || p.summaryReplySeq <= startSeq || p.unreachable {
		p.summary = new.withUpcomingDueTimesRaised(p.leftToOthersUntil)
		p.summaryReplySeq, p.unreachable = replySeq.Add(1), false
	}
	failedOver = p.lastLeaseReplicationID != 0 && new.lastLeaseReplicationID != p.lastLeaseReplicationID
	p.lastLeaseReplicationID = new.lastLeaseReplicationID
	return failedOver
}

// LeaveUpcomingHostsToOthers leaves hosts that come due between now and until, in microseconds, to
// other processes: their due times in the summary become until. Hosts that are due already stay
// due, because other processes may have no worker for them.
func (p *Partition) LeaveUpcomingHostsToOthers(until int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leftToOthersUntil = until
	p.summary = p.summary.withUpcomingDueTimesRaised(until)
}

// LastSummary returns the last summary of the partition. It returns false if the server did not answer
// the last call.
func (p *Partition) LastSummary() (PartitionSummary, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summary, !p.unreachable
}
