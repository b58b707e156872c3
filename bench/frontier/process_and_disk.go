package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
)

// A processSnapshot is what the system counts for this process.
type processSnapshot struct {
	cpuSeconds   float64
	written      uint64 // bytes of all write calls
	read         uint64 // bytes that came from the disk and not from the system's cache
	anonymousRSS uint64 // resident bytes, without mapped files
	mappedRSS    uint64 // resident bytes of mapped files, which the system can reclaim at any time
}

// readProcess reads a snapshot of this process.
func readProcess() (s processSnapshot, err error) {
	proc, err := procfs.Self()
	if err != nil {
		return s, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return s, err
	}
	io, err := proc.IO()
	if err != nil {
		return s, err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return s, err
	}
	return processSnapshot{stat.CPUTime(), io.WChar, io.ReadBytes, status.RssAnon, status.RssFile}, nil
}

const (
	diskPageBytes  = 4096 // size of a page of the store
	diskBatchPages = 2000 // pages between two syncs, about as in a transaction of the store
)

// measureDisk returns how many bytes a second can be written to a new file in dir until the disk has
// confirmed them: size bytes in order, and an eighth of them page by page at random places. size is a
// multiple of 1 MiB.
func measureDisk(dir string, size int) (sequential, random uint64, err error) {
	f, err := os.CreateTemp(dir, "disk-")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	// Random data, in case the disk compresses.
	block := make([]byte, 1<<20)
	fill := rand.NewChaCha8([32]byte{})
	if _, err := io.ReadFull(fill, block); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	for at := 0; at < size; at += len(block) {
		if _, err := f.WriteAt(block, int64(at)); err != nil {
			return 0, 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, 0, err
	}
	sequential = bytesPerSecond(size, time.Since(began))
	// Write pages in batches, and sync each batch.
	began = time.Now()
	pages := size / 8 / diskPageBytes
	for n := 1; n <= pages; n++ {
		at := rand.IntN(size/diskPageBytes) * diskPageBytes
		if _, err := f.WriteAt(block[:diskPageBytes], int64(at)); err != nil {
			return 0, 0, err
		}
		if n%diskBatchPages == 0 || n == pages {
			if err := f.Sync(); err != nil {
				return 0, 0, err
			}
		}
	}
	return sequential, bytesPerSecond(pages*diskPageBytes, time.Since(began)), nil
}

func bytesPerSecond(n int, d time.Duration) uint64 { return uint64(float64(n) / d.Seconds()) }

// trackPeakAnonymousRSS samples the anonymous resident memory of this process. peak ends the sampling
// and returns the maximum in bytes.
func trackPeakAnonymousRSS() (peak func() uint64) {
	return trackPeak(100*time.Millisecond, func() uint64 {
		s, err := readProcess()
		if err != nil {
			return 0
		}
		return s.anonymousRSS
	})
}

// trackPeak calls read at each interval. peak ends that and returns the maximum.
func trackPeak(interval time.Duration, read func() uint64) (peak func() uint64) {
	// A goroutine samples until peak is called, which waits for its end.
	var highest atomic.Uint64
	sample := func() { highest.Store(max(highest.Load(), read())) }
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			sample()
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		sample()
		return highest.Load()
	}
}
