package main

import (
	"os"
	"syscall"
)

// peakRSS returns the peak resident memory of a process that has ended, in MiB.
func peakRSS(ended *os.ProcessState) float64 {
	return float64(ended.SysUsage().(*syscall.Rusage).Maxrss) / 1024 // Linux counts KiB
}
