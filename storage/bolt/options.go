package bolt

import (
	"cmp"
	"sync/atomic"
	"time"
)

// Options are the settings of a Store or NoteStore. The zero value means the defaults.
type Options struct {
	// PostInterruptionDelay is how long no host is visited after Open if the store was not closed
	// cleanly. After a clean Close it applies, from Close on, to the hosts with a URL that was
	// leased then. A host whose LostVisitDelay is longer waits for that. 0 means 1 s.
	PostInterruptionDelay time.Duration
	// FlushEvery is the interval at which changes are written. 0 means 200 ms.
	FlushEvery time.Duration
	// FlushAfterChanges is the number of unwritten changes that are written at once, without waiting
	// for FlushEvery. 0 means 32,768.
	FlushAfterChanges int
	// MaxBufferedChanges is the largest number of changes in memory that are not checkpointed; calls
	// that change the store wait while there are as many. Above three quarters of it, every write
	// checkpoints, first the origins with the most changes; above an eighth, a write with few changes
	// does if origins have several changes each; below that, only an idle store checkpoints. 0 means
	// 393,216, of about 150 bytes each.
	MaxBufferedChanges int
	// PrefetchCount is how many URLs of a lane are read at a time. It is lower if MaxCachedURLs
	// would not suffice for all origins in memory. 0 means 64.
	PrefetchCount int
	// MaxCachedURLs is how many URLs of all queues are cached in memory. Each counts once, and once
	// more for every 256 bytes of its record. 0 means 131,072.
	MaxCachedURLs int
	// MaxHostsInMemory is how many hosts with URLs and without pending changes stay in memory, at
	// about 1 KiB each. Further hosts take about 130 bytes each and are read back when their turn
	// comes. 0 means 16,384.
	MaxHostsInMemory int
	// SharedMemoryBudget divides MaxBufferedChanges, MaxCachedURLs and MaxHostsInMemory among all
	// open stores that have it. nil: this store has them alone.
	SharedMemoryBudget *SharedMemoryBudget
	// BeforeWrite is called before each write of changes. It must put on the disk the output that
	// was produced before the calls that made these changes. If it fails, they are not written:
	// after a lack of space (ENOSPC, EDQUOT, EFBIG) or an error that wraps storage.ErrWriteStalled
	// it is called again later; after any other error the store has failed for good. It must not
	// call the store. nil does nothing.
	BeforeWrite func() error
	// ListOutputFiles is called after BeforeWrite. It returns an OutputFileExtent for each path
	// that was written to, with the number of bytes that BeforeWrite has put on the disk. The store
	// writes these lengths in the transaction of the changes; Store.RecordedOutputExtents returns
	// them, also after a crash. The length of an omitted path stays unchanged. ListOutputFiles must
	// not call the store. nil: no files.
	ListOutputFiles func() []OutputFileExtent
	// OnStallChange is called with the reason and the remedy when a write has failed, and with nil
	// when the store can write again. Repeated failures are not reported. A call with an error that
	// wraps storage.ErrFailed is the last one. OnStallChange must not call the store. nil does
	// nothing.
	OnStallChange func(error)
	// OnCommitted is called after each successful write with the time that it took, from before
	// BeforeWrite until the disk has confirmed the changes. It must not call the store, and must
	// return quickly. nil does nothing.
	OnCommitted func(took time.Duration)
	// OnDamaged is called with damage in the file that the store works around: a damaged record of a
	// URL, which is never visited, a damaged part of the seen set, or a queue that is shorter than
	// its count. It must not call the store. nil does nothing.
	OnDamaged func(error)
	// Now returns the time, for tests. nil means time.Now.
	Now func() time.Time

	noSync             bool // for tests: omit fsync, which matters only after a loss of power
	maxCheckpointPages int  // for tests: replaces the constant maxCheckpointPages
}

func (o Options) withDefaults() Options {
	o.PostInterruptionDelay = cmp.Or(max(o.PostInterruptionDelay, 0), time.Second)
	o.FlushEvery = cmp.Or(max(o.FlushEvery, 0), 200*time.Millisecond)
	o.FlushAfterChanges = cmp.Or(max(o.FlushAfterChanges, 0), 1<<15)
	o.MaxBufferedChanges = cmp.Or(max(o.MaxBufferedChanges, 0), 3<<17)
	o.PrefetchCount = cmp.Or(max(o.PrefetchCount, 0), 64)
	o.MaxCachedURLs = cmp.Or(max(o.MaxCachedURLs, 0), 1<<17)
	o.MaxHostsInMemory = cmp.Or(max(o.MaxHostsInMemory, 0), 1<<14)
	o.maxCheckpointPages = cmp.Or(max(o.maxCheckpointPages, 0), maxCheckpointPages)
	if o.BeforeWrite == nil {
		o.BeforeWrite = func() error { return nil }
	}
	if o.OnCommitted == nil {
		o.OnCommitted = func(time.Duration) {}
	}
	if o.OnStallChange == nil {
		o.OnStallChange = func(error) {}
	}
	if o.OnDamaged == nil {
		o.OnDamaged = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// bufferedChangeLimit returns the store's share of MaxBufferedChanges.
func (o *Options) bufferedChangeLimit() int {
	return o.SharedMemoryBudget.storeShareOf(o.MaxBufferedChanges)
}

// cachedURLLimit returns the store's share of MaxCachedURLs.
func (o *Options) cachedURLLimit() int { return o.SharedMemoryBudget.storeShareOf(o.MaxCachedURLs) }

// hostLimit returns the store's share of MaxHostsInMemory.
func (o *Options) hostLimit() int { return o.SharedMemoryBudget.storeShareOf(o.MaxHostsInMemory) }

// A SharedMemoryBudget divides the memory of one store among several. Each open store gets an equal
// share of its Options.MaxBufferedChanges, MaxCachedURLs and MaxHostsInMemory, but at least 4,096 of
// each, or the whole value if that is lower. The zero value is ready for use. A SharedMemoryBudget
// must not be copied, and may be used concurrently.
type SharedMemoryBudget struct{ openStoreCount atomic.Int64 }

// minShare is the smallest share of a store, so that a store still writes several changes at a time
// when very many others are open. 4,096 changes take less than a MiB.
const minShare = 4096

// addStore counts an open store until removeStore is called. It does nothing for a nil
// SharedMemoryBudget.
func (s *SharedMemoryBudget) addStore() (removeStore func()) {
	if s == nil {
		return func() {}
	}
	s.openStoreCount.Add(1)
	return func() { s.openStoreCount.Add(-1) }
}

// storeShareOf returns a store's share of total; all of it for a nil SharedMemoryBudget.
func (s *SharedMemoryBudget) storeShareOf(total int) int {
	if s == nil {
		return total
	}
	return max(total/int(max(1, s.openStoreCount.Load())), min(total, minShare))
}
