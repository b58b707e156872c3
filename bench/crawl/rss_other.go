//go:build !linux

package main

import "os"

// peakRSS returns 0, because other systems use different units or do not report it.
func peakRSS(*os.ProcessState) float64 { return 0 }

// ownUsage returns zeros, for the same reason.
func ownUsage() (cpuSeconds, rssMiB float64) { return 0, 0 }
