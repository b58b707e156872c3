package main

import (
	"os"
	"syscall"
)

// peakRSS returns the most memory that a process had in use, in MiB.
func peakRSS(ended *os.ProcessState) float64 {
	return float64(ended.SysUsage().(*syscall.Rusage).Maxrss) / 1024 // KiB
}
