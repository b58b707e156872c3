//go:build !darwin

package memlimit

import "os"

// machineMemory returns the machine's memory, 0 where there is no /proc.
func machineMemory(root string) int64 {
	b, _ := os.ReadFile(root + "proc/meminfo")
	n, _ := numberAfter(b, "MemTotal:")
	return n << 10 // it is in KiB
}
