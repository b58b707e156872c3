// Package bolt keeps the state of a crawl in one file, by bbolt. It is the
// engine of a crawl in one process that must survive it.
//
// A call takes effect in memory at once. What it changes goes into a batch,
// and one goroutine writes batch after batch to the file, each in one
// transaction: every FlushEvery, or when it is full. So a crash loses a suffix
// of the calls, never one out of the middle and never half of one.
//
// In memory are the hosts and origins, the heads of queues that were asked
// for, and what is not written yet. URLs are on disk: a queue is read from
// there, some URLs at a time, as it is worked off. A lease writes nothing: its
// URL stays in the file where it was, and is back in its queue if the process
// ends.
//
// # The file
//
// Integers in keys are big-endian; values are written in record.go. Each
// origin has a number, which begins the keys of all that is its own.
//
//	meta     "format", "clean", "opened"
//	hosts    host                                   → clock
//	origins  origin                                 → number, hold, counts
//	urls     number 4, lane 1, time 8, sequence 8   → entry
//	seen     number 4, fingerprint 8                → nothing
//	notes    number 4, key                          → value
//
// Lanes are those of package schedule, and one more for what is parked. The
// fingerprint is FNV-1a, of path and query.
package bolt
