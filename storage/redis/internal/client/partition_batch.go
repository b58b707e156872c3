package client

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// MaxBatchItems and maxBatchBytes bound the arguments of one call, because a script blocks its server.
const (
	MaxBatchItems = 500     // items of a call at most
	maxBatchBytes = 1 << 20 // bytes of arguments after which a call takes no further item
)

// A PartitionBatch is the items that one call sends to one partition.
type PartitionBatch struct {
	*Partition
	Args     []string // the arguments of its items, one after another
	Indexes  []int    // the indexes of its items
	argBytes int      // length of Args together
}

// Batches groups n items into batches by the partitions of their hosts. Items of a partition keep
// their order. item returns the host and the arguments of the i-th item.
func (all Partitions) Batches(n int, item func(i int) (host string, args []string)) []*PartitionBatch {
	var batches []*PartitionBatch
	current := make(map[*Partition]*PartitionBatch)
	for i := range n {
		host, args := item(i)
		p := all.ofHost(host)
		b := current[p]
		if b == nil || len(b.Indexes) == MaxBatchItems || b.argBytes > maxBatchBytes {
			b = &PartitionBatch{Partition: p}
			current[p], batches = b, append(batches, b)
		}
		b.Args, b.Indexes = append(b.Args, args...), append(b.Indexes, i)
		for _, a := range args {
			b.argBytes += len(a)
		}
	}
	return batches
}

// SendBatches calls a script for each batch, with commonArgs before the arguments of the batch. It
// repeats calls that fail. Batches of a partition are sent one after another, those of different
// partitions at the same time. For each item it calls each with the byte that the script returned
// for it, and whether the call was repeated; calls of each may be concurrent.
func (c *Client) SendBatches(
	ctx context.Context, all []*PartitionBatch, durable bool, sc *lua.Script, commonArgs []string,
	each func(i int, reply byte, retried bool) error,
) error {
	for len(all) > 0 {
		// Each round sends the first remaining batch of every partition.
		var round, later []*PartitionBatch
		var calls []ScriptCall
		called := make(map[*Partition]bool)
		for _, b := range all {
			if called[b.Partition] {
				later = append(later, b)
				continue
			}
			called[b.Partition] = true
			round, calls = append(round, b), append(calls, ScriptCall{b.Partition, slices.Concat(commonArgs, b.Args)})
		}
		err := c.runUpdates(ctx, durable, sc, calls, func(k int, reply string, retried bool) error {
			if len(reply) != len(round[k].Indexes) {
				return ErrBadReply
			}
			for j, i := range round[k].Indexes {
				if err := each(i, reply[j], retried); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		all = later
	}
	return nil
}
