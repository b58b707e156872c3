package client

import (
	"hash/fnv"
	"strconv"
	"sync"
	"sync/atomic"
)

// hashSlots is how many hash slots a cluster has (Redis Cluster specification).
const hashSlots = 16384

// A Partition is a share of the hosts: all its keys have one hash tag, so that
// they are in one slot, and a script may use all of them.
type Partition struct {
	keyPrefix string // of its keys
	slot      int64

	mu                     sync.Mutex // guards the fields below
	summary                PartitionSummary
	summaryReplySeq        uint64 // when summary was received, as Client.replySeq counts
	unreachable            bool   // its server did not answer last time
	leftToOthersUntil      int64  // until then hosts that come due are left to others
	lastLeaseReplicationID int64  // under which the last leases were given; 0: none were, as far as is known
}

// Key returns the key of the partition that has a name.
func (p *Partition) Key(name string) string { return p.keyPrefix + name }

// Partitions is all partitions of a store, by their index.
type Partitions []*Partition

// makePartitions returns n partitions whose slots are spread evenly over all: the
// tag of each is the first number whose slot is in its share of them.
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

// ofHost returns the partition of a host.
func (all Partitions) ofHost(host string) *Partition {
	h := fnv.New64a()
	h.Write([]byte(host))
	return all[h.Sum64()%uint64(len(all))]
}

// Total adds up what is known of all partitions. It returns false if the server of one
// did not answer last time.
func (all Partitions) Total() (sum PartitionSummary, complete bool) {
	sum = PartitionSummary{NextLeaseExpiry: Never, NextHoldEnd: Never, NextRevisit: Never}
	complete = true
	for _, p := range all {
		one, answers := p.LastSummary()
		sum, complete = sum.add(one), complete && answers
	}
	return sum, complete
}

// Reachable returns how many partitions have servers that answered last time.
func (all Partitions) Reachable() (n int) {
	for _, p := range all {
		if _, up := p.LastSummary(); up {
			n++
		}
	}
	return n
}

// cacheSummaryIfNewer keeps the summary that a call returned, unless a newer one is known:
// calls overtake each other. startSeq is Client.replySeq before the call. It reports whether
// the partition is served under another replication id than before.
func (p *Partition) cacheSummaryIfNewer(replySeq *atomic.Uint64, startSeq uint64, new PartitionSummary) (failedOver bool) {
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

// LeaveUpcomingHostsToOthers leaves hosts that come due before a time to other processes,
// but not those that are due already: nobody else may have a worker for them.
func (p *Partition) LeaveUpcomingHostsToOthers(until int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leftToOthersUntil = until
	p.summary = p.summary.withUpcomingDueTimesRaised(until)
}

// LastSummary returns the last summary of the partition, and false if its server has not
// answered since.
func (p *Partition) LastSummary() (PartitionSummary, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.summary, !p.unreachable
}
