package client

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// MaxBatchItems and maxBatchBytes bound the arguments of one call: it keeps its server busy.
const (
	MaxBatchItems = 500
	maxBatchBytes = 1 << 20
)

// A PartitionBatch is what goes to one partition in one call.
type PartitionBatch struct {
	*Partition
	Args     []string
	Indexes  []int // of its items
	argBytes int
}

// Batches sorts n items into calls, in their order for each partition.
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

// SendBatches makes the calls of batches, those of a partition one after another, and
// calls each with the byte that the script returned for an item.
func (c *Client) SendBatches(
	ctx context.Context, all []*PartitionBatch, durable bool, sc *lua.Script, commonArgs []string,
	each func(i int, reply byte, retried bool) error,
) error {
	for len(all) > 0 {
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
