package bolt

import (
	"cmp"
	"sync/atomic"
	"time"
)

// Options are the settings of a Store. The zero value means the defaults.
type Options struct {
	// PostInterruptionDelay is how long every host rests at least, from Open on, if
	// the store was not closed in order; its LostVisitDelay if that is longer. If it was,
	// those rest so from Close on of which a URL was out. 0 means 1 s.
	PostInterruptionDelay time.Duration
	// FlushEvery is how often changes are written. 0 means 200 ms.
	FlushEvery time.Duration
	// FlushAfterChanges is how many changes are written without waiting for the next
	// FlushEvery. 0 means 32,768.
	FlushAfterChanges int
	// MaxBufferedChanges is how many changes are kept in memory at most, in the log but not
	// in their place in the file; calls wait while there are as many. Beyond
	// three quarters of it they are checkpointed into the file all the time, beyond an
	// eighth when little else is to be written and origins have several, below
	// when nothing is. 0 means 393,216, of about 150 bytes each.
	MaxBufferedChanges int
	// PrefetchCount is how many URLs of a queue are read at a time, at most and if
	// MaxCachedURLs allows it for every origin. 0 means 64.
	PrefetchCount int
	// MaxCachedURLs is how many URLs are kept in memory that are in the file too, of
	// all queues together; each counts once, and once more for every 256 bytes of
	// it. 0 means 131,072.
	MaxCachedURLs int
	// MaxHostsInMemory is how many hosts with URLs and without unwritten changes stay in memory,
	// at about 1 KiB each. Further hosts take about 130 bytes each, and are read back
	// when their turn comes. 0 means 16,384.
	MaxHostsInMemory int
	// SharedMemoryBudget is shared by stores that divide MaxBufferedChanges, MaxCachedURLs and MaxHostsInMemory. nil: this store has
	// its own.
	SharedMemoryBudget *SharedMemoryBudget
	// BeforeWrite is called each time before changes are written, and must put on
	// the disk all that has to be there when the changes are, of what was done
	// before the calls that made them. If it fails, they are not written: for lack
	// of room (ENOSPC, EDQUOT, EFBIG) or an error that wraps storage.ErrWriteStalled it
	// is called again later, and after any other error the store has failed for
	// good. It must not call the store. nil: there is nothing.
	BeforeWrite func() error
	// ListOutputFiles is called after BeforeWrite. It returns an OutputFileExtent for each path that was written
	// to, with the number of its bytes that BeforeWrite has put on the disk. The store writes
	// these lengths with the changes; Store.RecordedOutputExtents returns them, also after a crash. The
	// length of an omitted path stays unchanged. It must not call the store. nil:
	// there are no files.
	ListOutputFiles func() []OutputFileExtent
	// OnStallChange is called once when a write has failed, with the reason and the remedy,
	// and once with nil when the store can write again. No call follows one with an
	// error that wraps storage.ErrFailed. It must not call the store.
	OnStallChange func(error)
	// OnCommitted is told how long it took to write changes and to have the disk
	// confirm them, BeforeWrite included. It must not call the store, or take long. nil
	// means nobody is told.
	OnCommitted func(took time.Duration)
	// OnDamaged is told of what makes no sense in the file and is passed by: a
	// record of a URL, which is set aside, a queue that is shorter than it was
	// counted. It must not call the store. nil means nobody is told.
	OnDamaged func(error)
	// Now tells the time, for tests. nil means time.Now.
	Now func() time.Time

	noSync             bool // for tests: leave fsync out, which only power cuts ask for
	maxCheckpointPages int  // for tests: see maxCheckpointPages
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

// bufferedChangeLimit returns how many changes the store may hold: see MaxBufferedChanges.
func (o *Options) bufferedChangeLimit() int {
	return o.SharedMemoryBudget.storeShareOf(o.MaxBufferedChanges)
}

// cachedURLLimit returns how many URLs the store may keep at hand: see MaxCachedURLs.
func (o *Options) cachedURLLimit() int { return o.SharedMemoryBudget.storeShareOf(o.MaxCachedURLs) }

// hostLimit returns how many hosts that could be idle stay in memory: see MaxHostsInMemory.
func (o *Options) hostLimit() int { return o.SharedMemoryBudget.storeShareOf(o.MaxHostsInMemory) }

// A SharedMemoryBudget is memory for one store that several divide: each that is open has
// an equal part of Options.MaxBufferedChanges, Options.MaxCachedURLs and Options.MaxHostsInMemory, and never less
// than 4,096. The zero value is ready; a SharedMemoryBudget must not be copied.
type SharedMemoryBudget struct{ openStoreCount atomic.Int64 }

// minShare keeps a store from writing every change by itself because a great
// many others are open: of changes it is less than a MiB.
const minShare = 4096

// addStore counts a store in, until it calls leave. A store without a SharedMemoryBudget has
// everything for itself.
func (s *SharedMemoryBudget) addStore() (removeStore func()) {
	if s == nil {
		return func() {}
	}
	s.openStoreCount.Add(1)
	return func() { s.openStoreCount.Add(-1) }
}

// storeShareOf returns a store's part of most.
func (s *SharedMemoryBudget) storeShareOf(total int) int {
	if s == nil {
		return total
	}
	return max(total/int(max(1, s.openStoreCount.Load())), min(total, minShare))
}
