// Package bolt keeps the state of a crawl in one file, by bbolt. It is the
// engine of a crawl in one process that must survive it.
//
// Open gives a storage.Store, which is a storage.Inspector too, and keeps others
// from the file until Close. After a crash Open is all that there is to do: what
// was leased is in its queue again, and hosts rest before they are visited. Options
// say how often changes are written, what must be on the disk before they are
// (BeforeWrite), and what is called when they cannot be (OnStallChange, OnDamaged). Compact
// gives back the space that is free in a file. OpenNotes opens a file for its notes alone.
//
// # How a change reaches the file
//
// A call takes effect in memory at once. What it changes goes into a redo log,
// which one goroutine appends to the file, all calls of a moment in one
// transaction, every FlushEvery or when there is much: then they are durable.
// So a crash loses a suffix of the calls, never one out of the middle and never
// half of one.
//
// Changes stay in memory, by origin, until they are checkpointed: put into their
// place in the file. That is done for some origins at a time, in the order of
// the file, round after round, when there are many changes or little else to
// do. URLs of a crawl come scattered over all its sites; written where they
// belong at once, each would rewrite a page or two of the file, and by the time
// an origin is checkpointed there are several on the same page. When a round, or
// sweep, is over, the log from before it is deleted. The checkpoint of an origin is
// part of a transaction that appends to the log, and takes all that was done to
// the origin until then: so the file and its log together are always the state
// of one moment. To open the file after a crash, or after Close, is to read the
// log back into memory; what of it was checkpointed already is checkpointed again, which
// makes no difference.
//
// While nothing can be written, the changes wait in memory and the committer
// tries again: see storage.ErrWriteStalled.
//
// # What is in memory
//
// The hosts that have something to hand out, up to Options.MaxHostsInMemory, and their
// origins; of hosts beyond, which are idle, when their turn comes; the heads of
// queues that were asked for; changes that are not checkpointed. URLs are on disk: a
// queue is read from there, some URLs at a time, as it is worked off. An origin
// that holds nothing is forgotten, and read back when it is met again. A lease
// writes nothing: its URL stays in the file where it was, and is back in its
// queue if the process ends.
//
// # The file
//
// Integers in keys are big-endian; values are written in record.go. Each
// origin has a number, which begins the keys of all that is its own. A host has
// the number of its first origin. Every value ends with a checksum (CRC-32C, 4 bytes)
// of its key and itself: see "Damage".
//
//	meta     "format", "clean", "opened", "floor", "crashed", "unchecked"; "sealing" during a migration
//	names    = origin, or @ host                    → number 4
//	origins  number 4                               → name, hold, counts
//	hosts    number 4                               → clock
//	urls     number 4, lane 1, time 8, sequence 8   → entry
//	prints   number 4, highest fingerprint 8        → fingerprints 8 each, in order
//	resting  number 4, fingerprint 8                → key in urls
//	notes    number 4, key                          → value
//	counted  domain, 0, host                        → empty; without a host: how many there are
//	log      number of the segment 8                → changes
//	files    path of a file, or a directory         → name in it, serial, bytes on the disk
//
// Lanes are those of package schedule, and two more: for what is parked, and
// for records that make no sense. In lanes that are not timed the time is the
// rank. prints is the seen set; the fingerprint is FNV-1a, of path and query and of
// what else an entry's request is, if it is no GET. resting is the index for
// RescheduleByLastmod. The value of a URL in the log has its own checksum, so that nothing has to
// be computed again when it is checkpointed.
//
// Open migrates an older format, a portion at a time, each in a transaction, so that
// it may be broken off at any moment and the next Open goes on. Format 3 is 2 with
// requests that are no GET; format 4 is 3 with checksums, and with the bucket files.
// Older programs refuse a newer format.
//
// # Damage
//
// A checksum is checked whenever a value is read. A URL whose record is damaged is set
// aside and reported (Options.OnDamaged), and never visited. Where a part of the seen
// set is damaged, GETs that may be in it are visited again, and requests that are not safe
// are not sent. Any other damaged record, and pages that bbolt cannot read or that
// the system cannot map in (SIGBUS), are an error that names the record: of Open, or
// of the call, which ends the crawl.
//
// # Files of output
//
// Options.BeforeWrite puts output on the disk before the changes that depend on it, and
// Options.ListOutputFiles says how much that is. The lengths are written in the transaction of
// these changes. After a crash, what lies before a length must be there, and
// what lies behind it may be torn. That stays known (Store.OutputMayBeTorn) until lengths are
// written again, though the store is opened meanwhile, to be looked into.
//
// # The code
//
// Begin with store.go: its methods are those of storage.Store. inspector.go has those of
// storage.Inspector, and notes.go those of NoteStore. They lock the engine, read the file where they
// must, and leave the work to a part. A part calls those below it, and none calls a Store:
//
//	Store, NoteStore         the verbs
//	noteTable            the verbs that both have
//	leaseTable           leases
//	urlQueues            URLs in their lanes
//	seenSet              fingerprints
//	engine               opens, locks, flushes and closes all of the following
//	committer            writes what the journal has; the only goroutine
//	originCache          origins and hosts, in memory and in the file, and their schedule
//	headCache            how many URLs are in memory
//	journal              changes that are not in their place in the file: log and checkpoints
//	admittedHostCounter  hosts that the crawl admitted
//	outputFiles          lengths of the files of output
//	storeFile            the file, by bbolt
//	writeHealth          whether the file can be written
//	damageReporter       what is damaged in it
//
// Open and OpenNotes start one goroutine, committer.run; Close ends it and waits for it. There is
// one lock, engine.mu: every method of a part requires it, but those of the committer that say
// otherwise. It comes before the locks of bbolt: a call that reads the file holds it. The
// committer writes without it, so that calls go on in memory meanwhile, and takes it before and
// after, never within a transaction. The functions of Options are called with it, or while the
// committer writes, and must not call the store.
package bolt
