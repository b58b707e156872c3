//go:build !darwin

package memlimit

import "os"

// machineMemory returns the bytes of the machine's memory, 0 on systems without /proc.
func machineMemory(root string) int64 {
	b, _ := os.ReadFile(root + "proc/meminfo")
	n, _ := numberAfter(b, "MemTotal:")
	return n << 10 // from KiB
}
