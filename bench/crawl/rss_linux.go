package main

import (
	"os"
	"syscall"
	"time"
)

// peakRSS returns the peak resident memory of a process that has ended, in MiB.
func peakRSS(ended *os.ProcessState) float64 {
	return float64(ended.SysUsage().(*syscall.Rusage).Maxrss) / 1024 // Linux counts KiB
}

// ownUsage returns the user and system time of this process in seconds, and its peak resident memory
// in MiB.
func ownUsage() (cpuSeconds, rssMiB float64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), float64(u.Maxrss) / 1024
}
