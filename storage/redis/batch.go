package redis

import (
	"context"
	"slices"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// What one call of a script is given is bounded: it keeps its server busy.
const (
	maxBatchItems = 500
	maxBatchBytes = 1 << 20
)

// A partitionBatch is what goes to one partition in one call.
type partitionBatch struct {
	*partition
	args     []string
	indexes  []int // of what the caller gave, by index
	argBytes int
}

// batches sorts n items into calls, in their order for each partition.
func (all partitionSet) batches(n int, item func(i int) (host string, args []string)) []*partitionBatch {
	var batches []*partitionBatch
	current := make(map[*partition]*partitionBatch)
	for i := range n {
		host, args := item(i)
		p := all.ofHost(host)
		b := current[p]
		if b == nil || len(b.indexes) == maxBatchItems || b.argBytes > maxBatchBytes {
			b = &partitionBatch{partition: p}
			current[p], batches = b, append(batches, b)
		}
		b.args, b.indexes = append(b.args, args...), append(b.indexes, i)
		for _, a := range args {
			b.argBytes += len(a)
		}
	}
	return batches
}

// sendBatches makes the calls of batches, those of a partition one after another, and
// gives what is said of each item to each.
func (c *clusterClient) sendBatches(
	ctx context.Context, all []*partitionBatch, durable bool, sc *lua.Script, commonArgs []string,
	each func(i int, reply byte, retried bool) error,
) error {
	for len(all) > 0 {
		var round, later []*partitionBatch
		var calls []scriptCall
		called := make(map[*partition]bool)
		for _, b := range all {
			if called[b.partition] {
				later = append(later, b)
				continue
			}
			called[b.partition] = true
			round, calls = append(round, b), append(calls, scriptCall{b.partition, slices.Concat(commonArgs, b.args)})
		}
		err := c.runUpdates(ctx, durable, sc, calls, func(k int, reply string, retried bool) error {
			if len(reply) != len(round[k].indexes) {
				return errBadReply
			}
			for j, i := range round[k].indexes {
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
