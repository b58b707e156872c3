// Package memlimit finds out how much memory the process may use (Get), whether it is nearly used up
// (PressureMonitor), and how many processes the kernel has killed for want of memory (OOMKills).
// Begin with Get.
//
// The package starts no goroutine. PressureMonitor.mu is its only lock; it is held while the callback
// of NewPressureMonitor runs, so it comes before every lock that the callback takes.
package memlimit
