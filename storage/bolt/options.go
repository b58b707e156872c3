package bolt

import "time"

// Options are the settings of a Store. The zero value means the defaults.
type Options struct {
	// RestartDelay is how long every host rests at least, from Open on, if
	// the store was not closed in order; its Gap if that is longer. If it was,
	// those rest so from Close on of which a URL was out. 0 means 1 s.
	RestartDelay time.Duration
	// FlushEvery is how often changes are written. 0 means 200 ms.
	FlushEvery time.Duration
	// FlushSize is how many changes are written without waiting for the next
	// FlushEvery. 0 means 32,768.
	FlushSize int
	// Held is how many changes are kept in memory at most, in the log but not
	// in their place in the file; calls wait while there are as many. Beyond
	// three quarters of it they are folded into the file all the time, beyond an
	// eighth when little else is to be written and origins have several, below
	// when nothing is. 0 means 393,216, of about 150 bytes each.
	Held int
	// Window is how many URLs of a queue are read at a time, at most and if
	// Cached allows it for every origin. 0 means 64.
	Window int
	// Cached is how many URLs are kept in memory that are in the file too, of
	// all queues together; each counts once, and once more for every 256 bytes of
	// it. 0 means 131,072.
	Cached int
	// Hosts is how many hosts with URLs and without unwritten changes stay in memory,
	// at about 1 KiB each. Further hosts take about 130 bytes each, and are read back
	// when their turn comes. 0 means 16,384.
	Hosts int
	// Share is shared by stores that divide Held, Cached and Hosts. nil: this store has
	// its own.
	Share *Share
	// Before is called each time before changes are written, and must put on
	// the disk all that has to be there when the changes are, of what was done
	// before the calls that made them. If it fails, they are not written: for lack
	// of room (ENOSPC, EDQUOT, EFBIG) or an error that wraps storage.ErrStalled it
	// is called again later, and after any other error the store has failed for
	// good. It must not call the store. nil: there is nothing.
	Before func() error
	// Files is called after Before. It returns a File for each path that was written
	// to, with the number of its bytes that Before has put on the disk. The store writes
	// these lengths with the changes; Store.Files returns them, also after a crash. The
	// length of an omitted path stays unchanged. Files must not call the store. nil:
	// there are no files.
	Files func() []File
	// Stalled is called once when a write has failed, with the reason and the remedy,
	// and once with nil when the store can write again. No call follows one with an
	// error that wraps storage.ErrFailed. It must not call the store.
	Stalled func(error)
	// Committed is told how long it took to write changes and to have the disk
	// confirm them, Before included. It must not call the store, or take long. nil
	// means nobody is told.
	Committed func(took time.Duration)
	// Damaged is told of what makes no sense in the file and is passed by: a
	// record of a URL, which is set aside, a queue that is shorter than it was
	// counted. It must not call the store. nil means nobody is told.
	Damaged func(error)
	// Now tells the time, for tests. nil means time.Now.
	Now func() time.Time

	noSync    bool // for tests: leave fsync out, which only power cuts ask for
	foldPages int  // for tests: see foldPages
}

func (o Options) withDefaults() Options {
	if o.RestartDelay <= 0 {
		o.RestartDelay = time.Second
	}
	if o.FlushEvery <= 0 {
		o.FlushEvery = 200 * time.Millisecond
	}
	if o.FlushSize <= 0 {
		o.FlushSize = 1 << 15
	}
	if o.Held <= 0 {
		o.Held = 3 << 17
	}
	if o.Window <= 0 {
		o.Window = 64
	}
	if o.Cached <= 0 {
		o.Cached = 1 << 17
	}
	if o.Hosts <= 0 {
		o.Hosts = 1 << 14
	}
	if o.foldPages == 0 {
		o.foldPages = foldPages
	}
	if o.Before == nil {
		o.Before = func() error { return nil }
	}
	if o.Committed == nil {
		o.Committed = func(time.Duration) {}
	}
	if o.Stalled == nil {
		o.Stalled = func(error) {}
	}
	if o.Damaged == nil {
		o.Damaged = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
