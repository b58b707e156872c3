//go:build !darwin

package memlimit

import "os"

// machineMemory returns the machine's memory, 0 where there is no /proc.
func machineMemory(root string) int64 {
	b, err := os.ReadFile(root + "proc/meminfo")
	if err != nil {
		return 0
	}
	n, _ := numberAfter(b, "MemTotal:")
	return n << 10 // it is in KiB
}
