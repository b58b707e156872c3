package client

import (
	"strings"
	"testing"
)

// The slots of partitions are spread evenly over all slots, for any number of partitions.
func TestPartitionsAreSpreadEvenly(t *testing.T) {
	for _, n := range []int{1, 3, 64, 1024} {
		for i, p := range makePartitions("p", n) {
			tag := strings.TrimSuffix(strings.TrimPrefix(p.keyPrefix, "p:{"), "}:")
			if slot := int(slotOf(tag)); slot*n/hashSlots != i {
				t.Fatalf("partition %d of %d is in slot %d", i, n, slot)
			}
		}
	}
	if slot := slotOf("123456789"); slot != 0x31c3 { // the check value of CRC-16/XMODEM
		t.Errorf("slot %#x, want %#x", slot, 0x31c3)
	}
}
