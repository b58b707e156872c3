package client

import (
	"fmt"
	"strconv"
	"testing"
)

// Batches keep the order of a partition's items, and hold at most MaxBatchItems.
func TestBatches(t *testing.T) {
	const n = 4*MaxBatchItems + 1
	last := map[*Partition]int{}
	seen := 0
	for _, b := range makePartitions("p", 2).Batches(n, func(i int) (string, []string) {
		return fmt.Sprintf("host%d", i%7), []string{strconv.Itoa(i), ""}
	}) {
		if len(b.Indexes) > MaxBatchItems || len(b.Args) != 2*len(b.Indexes) {
			t.Errorf("a batch has %d items and %d arguments", len(b.Indexes), len(b.Args))
		}
		for k, i := range b.Indexes {
			if before, ok := last[b.Partition]; ok && before >= i || b.Args[2*k] != strconv.Itoa(i) {
				t.Fatalf("item %d with argument %s comes after item %d", i, b.Args[2*k], before)
			}
			last[b.Partition] = i
			seen++
		}
	}
	if seen != n {
		t.Errorf("%d items are in batches, want %d", seen, n)
	}
}
