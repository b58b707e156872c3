// Package bolt is the storage engine of a crawl in one process whose state survives the process. It
// keeps the state in one file, through bbolt.
//
//	store, err := bolt.Open("crawl/frontier.db", bolt.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//
// Open returns a storage.Store that is also a storage.Inspector and a storage.Importer. No other
// process can open the file until Close. After a crash Open needs no repair: leased URLs are in
// their queues again, and no host is due before Options.PostInterruptionDelay has passed. OpenNotes
// opens a file for its notes alone, and Compact gives the free space in a file back.
//
// # How a change reaches the file
//
// A call takes effect in memory at once. Its changes are appended to a redo log in memory. One
// goroutine, the committer, writes that log into the file every Options.FlushEvery (200 ms), or
// earlier after Options.FlushAfterChanges: all calls since the last write in one transaction, which
// bbolt syncs. Then the calls are durable. A crash therefore loses the last calls, never one out of
// the middle and never half of one.
//
// The changes also stay in memory, by origin, until they are checkpointed: written to their final
// place in the file. A transaction checkpoints some origins, in the order of the file, when many
// changes are in memory or little else is to be written. One pass over all origins that had changes
// when it started is a sweep; after it, the log from before the sweep is deleted. Checkpoints are
// batched because the URLs of a crawl come scattered over its sites: written one by one, each would
// rewrite a page or two of the file, while a later checkpoint changes several URLs on one page. For
// the same reason a sweep that starts because many changes are in memory checkpoints only the origins
// with the most changes, which have at least half of all. It appends the changes of the others to the
// log again, and so carries them over to the next sweep. An origin may be carried over any number of
// times while the store is busy. The log stays within its limit all the same, since every such sweep
// checkpoints at least half of the changes.
//
// A transaction that checkpoints an origin also appends the log up to the same moment. The file and
// its log together are thus always the state of one moment. Open reads the log back into memory.
// Changes in it that were checkpointed before are checkpointed again, which changes nothing.
//
// While the file cannot be written, the changes wait in memory and the committer tries again: see
// storage.ErrWriteStalled. Calls that change the store wait while Options.MaxBufferedChanges are in
// memory, or four times as many in the log.
//
// # What is on disk after each call
//
// Until the next write of the committer: nothing of the call. After that write, which Flush waits
// for, the file holds the following records: first in the bucket log, and after a checkpoint in the
// buckets below.
//
//	Add                   for each new URL: the URL in its lane, and its fingerprint
//	Lease                 nothing for a lease, whose URL stays where it was, except the origin's
//	                      record when revisits and other URLs take turns; for each lease that has
//	                      expired: the URL in a lane of returned URLs, and the host's clock
//	Renew                 nothing
//	MarkSent              the URL again, with the mark
//	Ack                   the deletion of the URL and, if it is kept, the URL in its new lane;
//	                      the host's clock, if the Ack has one
//	Hold                  the origin's record, which holds the hold
//	RescheduleByLastmod   the URL at its new time, and its entry in the index of revisits
//	UnparkMatchingURLs    the moved URLs, at most 256 in one atomic step
//	SetNote               the note
//	Import                the URLs, fingerprints, clock and hold of each dump; a dump is atomic
//
// Every record of an origin's URLs is followed by the origin's record, with its counts, in the same
// transaction. AdmitHostsWithinLimits skips the log: the next write puts the hosts into the bucket
// counted.
//
// Close postpones each host with a leased URL by the longer of its LostVisitDelay and
// Options.PostInterruptionDelay, writes what is left, and marks the file as clean unless a write has
// failed. The log stays, and the next Open reads it. If the file is not clean, Open records its time
// in the key crashed and postpones every host by the same delay from then on.
//
// # What is in memory
//
// The hosts that have URLs to lease, up to Options.MaxHostsInMemory, with their origins; a stub of
// each further host, which is evicted and read back when its turn comes; the heads of the lanes that
// were read; and the changes that are not checkpointed. All other URLs are on disk alone: a queue is
// read in portions of at most Options.PrefetchCount. An origin without URLs is dropped from memory
// soon after its last change, and read back when a call names it.
//
// # The file
//
// Integers in keys are big-endian. Each origin has a number, which begins the keys of everything that
// belongs to it; a host has the number of its first origin. Every value ends with a checksum
// (CRC-32C, 4 bytes) of its key and itself.
//
//	meta     "format", "clean", "opened", "floor", "crashed", "unchecked"; "sealing" during a migration
//	names    = origin, or @ host                    → number 4
//	origins  number 4                               → name, hold, counts
//	hosts    number 4                               → clock
//	urls     number 4, lane 1, time 8, sequence 8   → entry
//	prints   number 4, highest fingerprint 8        → fingerprints 8 each, in order
//	resting  number 4, fingerprint 8                → key in urls
//	notes    number 4, key                          → value
//	counted  domain, 0, host                        → empty; without a host: number of hosts
//	log      number of the segment 8                → changes
//	files    path of a file, or a directory         → name in it, serial, bytes on the disk
//
// Lanes are those of package schedule and two more, for parked URLs and for damaged records. In lanes
// without times, the time is the rank. prints is the seen set: see storage.Entry.RequestFingerprint.
// resting is the index for RescheduleByLastmod. Entries and clocks are encoded by package
// storage/internal/record. In the log, the value of a URL has its own checksum, which the checkpoint
// copies.
//
// Open migrates an older format in portions, one transaction each, so that a migration that was
// interrupted continues with the next Open. Format 3 is format 2 with requests other than GET; format
// 4 is format 3 with checksums and the bucket files. Formats 1 and 2 are refused. Older programs
// refuse a newer format.
//
// # Damage
//
// The store verifies a checksum whenever it reads the value. It moves a URL with a damaged record to
// a lane of its own, reports it (Options.OnDamaged) and never visits it. Where a part of the seen set
// is damaged, GETs that may be in it are visited again, and requests that are unsafe are not sent.
// Any other damaged record is an error that names the record, of Open or of the call, and ends the
// crawl. So is a page that bbolt cannot read or the system cannot map (SIGBUS).
//
// # Output files
//
// Options.BeforeWrite puts output on the disk before the changes that depend on it, and
// Options.ListOutputFiles returns how many bytes that are. The lengths are written in the transaction
// of these changes. After a crash, the bytes before a length are there, and the bytes after it may be
// torn. Store.OutputMayBeTorn reports this until lengths are written again, even if the store is
// opened in between only to be inspected.
//
// # Where to begin reading
//
// Begin with store.go, which has the methods of storage.Store; inspector.go has those of
// storage.Inspector and notes.go those of NoteStore. They lock the engine, begin a read transaction
// where they need the file, and call a part. A part calls only parts below it in this list:
//
//	Store, NoteStore     the exported methods
//	noteTable            the methods that both have
//	leaseTable           leases
//	urlQueues            URLs in their lanes
//	seenSet              fingerprints
//	engine               opens, locks, flushes and closes all of the following
//	committer            the goroutine that writes what the journal holds
//	originCache          origins and hosts, in memory and in the file, and their schedule
//	headCache            the URLs at the heads of lanes, in memory
//	journal              changes that are not in their final place: log and checkpoints
//	admittedHostCounter  hosts that the crawl admitted
//	outputFiles          lengths of the output files
//	storeFile            the file, through bbolt
//	writeHealth          whether the file can be written
//	damageReporter       errors and reports of damage
//
// # Goroutines and locks
//
// Open and OpenNotes start one goroutine, committer.run. Close ends it and waits for it, except after
// bbolt has faulted during a read: then the goroutine may wait forever for a lock of bbolt.
//
// There is one lock, engine.mu. The methods of the parts require it, apart from those of the
// committer that take it themselves and those that open and close the file. The lock order is
// engine.mu, then the locks of bbolt: a call that reads the file holds engine.mu during its read
// transaction. The committer never takes engine.mu within a transaction. It holds engine.mu before
// and after a write but not during it, so that calls continue in memory meanwhile.
//
// The committer calls Options.BeforeWrite, ListOutputFiles and OnCommitted without engine.mu;
// OnStallChange, OnDamaged and the shouldUnpark of UnparkMatchingURLs are called with it. None of
// them may call the store.
package bolt
