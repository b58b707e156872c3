// Package storage is the seam between a crawl and where its state is kept:
// queues, seen set, host clocks, leases and notes.
//
// An Entry that is new to the seen set is added to the queue of its origin. A
// Lease takes it out when its host is due, for a time; an Ack ends the lease, says
// what became of the URL, and sets the host's clock. Whoever dies with a lease
// loses nothing: it runs out. Hold keeps an origin's queue shut, UnparkMatchingURLs
// brings back what was parked, RescheduleByLastmod what rests.
//
// A Store is composed of small interfaces, so that a part of a crawl asks for no more than it
// uses: a Queue hands out URLs, Parking brings back what is parked or rests, Notes keep values
// by origin and key, and a HostAdmitter counts hosts.
//
// The verbs are the crawl's own, not a key-value store's, so that each engine
// can do each of them atomically in its own way. storage/memory is for tests
// and for crawls that need not survive their process, storage/bolt for those that
// must, storage/redis for those of many processes. storagetest is the
// specification: every Store passes it. An engine may be an Inspector as well, for
// reports, and an Importer, to take over what another holds. The package decides
// nothing: it is told the time, and what to keep.
package storage

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Errors of a Store.
var (
	// ErrStaleLease refuses to end or renew a lease that ran out and was given away.
	ErrStaleLease = errors.New("lease ran out")
	// ErrClosed refuses a call on a closed Store.
	ErrClosed = errors.New("store is closed")
	// ErrFull refuses what would go beyond a limit of the Store.
	ErrFull = errors.New("store is full")
	// ErrWriteStalled refuses leases while the Store cannot write: the disk is full,
	// say. Nothing is lost, and it goes on by itself when it can write again.
	ErrWriteStalled = errors.New("nothing can be written for now")
	// ErrFailed ends a Store: its last writes may not be on the disk, and another try
	// would not show it. Calls that change the Store return it from then on. Reopening
	// the Store finds what was durable before.
	ErrFailed = errors.New("nothing can be written any more")
)

// A FailureNotifier is a Store that may fail for good. Every Store that wraps ErrFailed in its
// errors is one.
type FailureNotifier interface {
	// FailureChannel returns a channel that is closed when the Store fails for good. A caller
	// that waits for a lease then calls Lease, which returns the reason.
	FailureChannel() <-chan struct{}
}

// Limits of what a Store is given; a call that goes beyond is refused whole.
const (
	MaxCallbackDataBytes = 64 << 10 // bytes of Entry.CallbackData
	MaxStatsBytes        = 1 << 10  // bytes of HostState.EncodedStats
	MaxValidatorBytes    = 1 << 10  // bytes of VisitHistorySummary.ETag, and of VisitHistorySummary.LastModified
	MaxBodyBytes         = 16 << 20 // bytes of NonGETRequest.Body
	MaxNoteBytes         = 16 << 20 // bytes of a note
)

// A Store is the state of one crawl. A URL belongs to the queue of its
// origin; the queues of one host (Origin.Host) share the host's clock and
// slots. Every call is atomic per host. A call takes effect at once; it
// becomes durable in order, so that a crash loses a suffix of the calls and
// never one call out of the middle. All methods may be called at the same time.
type Store interface {
	Queue
	Notes
	Parking
	// HostAdmitter counts the hosts whose URLs the crawl queues.
	HostAdmitter

	// Flush makes all earlier calls durable.
	Flush(ctx context.Context) error
	// Close flushes and closes. Leases that are out go back to their queues.
	Close() error
}

// A Queue holds the URLs that are to be visited and leases them to workers.
type Queue interface {
	// Add queues the entries whose URLs the seen set does not hold, in their
	// order, and puts them into it, as long as it holds fewer than maxPerOrigin URLs of
	// their origin (0: no limit). Different Requests to a URL count as several. It
	// returns what became of each, or an error and nothing. Entries with RobotsFor set
	// (robots.txt hops) pass by seen set and limit.
	Add(ctx context.Context, entries []Entry, maxPerOrigin int) ([]AddOutcome, error)

	// Lease takes at most max URLs of hosts that are due: no host before its
	// Due, no origin that is held, never more of a host at a time than its
	// Slots, longest due first, and within an origin by PriorityClass, then by PriorityRank,
	// then in the order of Add. Pages whose revisit has come take turns with
	// URLs of class ClassNormal and ClassLate. A lease that is neither acked nor renewed
	// within ttl runs out: its URL goes back to the head of its queue, and the
	// host rests its LostVisitDelay from then. If there is none, Wait says when to ask
	// again. While the Store cannot write it returns an error wrapping ErrWriteStalled,
	// and when it has failed for good one that wraps ErrFailed.
	Lease(ctx context.Context, now time.Time, ttl time.Duration, max int) ([]Lease, Wait, error)

	// Renew lets the lease run for ttl from now. It returns ErrStaleLease if it ran out.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) error

	// MarkSent sets or clears Entry.Sent of a leased URL, for good: however the lease
	// ends, who leases the URL next finds it so. It returns ErrStaleLease if the lease
	// was given away, or has ended. Only after a Flush does it survive a crash.
	MarkSent(ctx context.Context, l Lease, sent bool) error

	// Ack ends leases. A lease that ran out is refused: the others take
	// effect, and an error wrapping ErrStaleLease is returned. Being told no time,
	// Ack takes a lease for good until a Lease gives it away.
	Ack(ctx context.Context, acks []Ack) error

	// Hold hands out no URL of the origin before until; its robots.txt hops
	// (RobotsFor set) are not URLs of the origin they are fetched for: those that are
	// on the origin itself go ahead of its queue, held or not. A zero time ends
	// the hold. A dormant hold says that nobody should wait for it: see RemainingSuspended.
	Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error
}

// Parking changes when URLs are visited that are not simply queued: parked ones, and pages
// that wait for their revisit.
type Parking interface {
	// RescheduleByLastmod makes pages that wait for their revisit due at once which were
	// visited last before they were modified, notes that time in VisitHistorySummary.SitemapLastmod,
	// and returns how many they were. URLs that do not wait so are passed over.
	RescheduleByLastmod(ctx context.Context, now time.Time, lastmods []SitemapLastmod) (rescheduled int, err error)

	// UnparkMatchingURLs offers the origin's parked URLs to shouldUnpark, and queues again
	// those for which it returns true, some at a time: a crash may leave the rest
	// parked. The zero Origin stands for every origin that has parked URLs.
	// shouldUnpark must not call the Store.
	UnparkMatchingURLs(ctx context.Context, o decorum.Origin, shouldUnpark func(Entry) bool) (unparked int, err error)
}

// A SitemapLastmod is word, from a sitemap, of when a page was modified.
type SitemapLastmod struct {
	URL      decorum.URL // the page
	Modified time.Time   // as the sitemap says
}

// A HostState is the clock of one host and what politeness remembers of it.
type HostState struct {
	Due                 time.Time     // no visit begins before
	LostVisitDelay      time.Duration // the rest owed after a visit whose end was not recorded
	Slots               int           // visits at a time; 0 means 1
	ConsecutiveFailures int           // failures in a row, as back-off counts them
	EncodedStats        []byte        // what the crawl remembers of the host; at most MaxStatsBytes bytes, never written to
}

// An AddOutcome is what became of an entry that was offered to Add.
type AddOutcome uint8

// Results of Add.
const (
	Added     AddOutcome = iota // new: it is queued
	Duplicate                   // the seen set held it
	OverLimit                   // new, and its origin has all the URLs that it may have
)

// CountAdded returns how many of the results are Added.
func CountAdded(results []AddOutcome) (n int) {
	for _, f := range results {
		if f == Added {
			n++
		}
	}
	return n
}

// A Lease is one URL taken from its queue until Expires.
type Lease struct {
	Entry
	HostState HostState // as it was when the lease was made
	Token     uint64    // fences the lease: unique within a store's life
	Expires   time.Time // from then on others may have it
}

// An AckOutcome is what became of a leased URL.
type AckOutcome uint8

// Outcomes.
const (
	Done      AckOutcome = iota // visited: leaves the queue, stays in the seen set
	Requeue                     // not visited: goes back to the head of its queue
	RetryAt                     // failed: queued again, handed out not before Ack.NotBefore, then first of its PriorityClass
	Park                        // disallowed: kept aside until UnparkMatchingURLs
	Drop                        // given up: leaves the queue, stays in the seen set
	RevisitAt                   // visited: rests until its revisit, not before Ack.NotBefore; a hop is Done
)

// An Ack ends a lease.
type Ack struct {
	// Lease is the one that ends. If the URL is kept (Requeue, RetryAt, Park, RevisitAt), so
	// is the Entry as it is here, but for Sent: whoever acks counts FailedAttempts, and sets
	// VisitHistorySummary, before.
	Lease     Lease
	Outcome   AckOutcome // what became of the URL
	NotBefore time.Time  // RetryAt, RevisitAt: not before
	// HostState is the host's new state after a visit; nil leaves it as it was.
	// Due never moves back: the later of the two stands.
	HostState *HostState
}

// A RemainingWorkKind says what is left when Lease has nothing to give.
type RemainingWorkKind uint8

// What may be left.
const (
	RemainingNone      RemainingWorkKind = iota // no URL is queued and no lease is out
	RemainingRevisits                           // only pages whose revisit has not come; Until is when the first one does
	RemainingSuspended                          // only such, and origins under a dormant hold; Until is the earliest end of one
	RemainingPending                            // URLs wait for their host, hold or retry time, or leases are out
)

// A Wait tells who got no lease when to ask again.
type Wait struct {
	RemainingWorkKind RemainingWorkKind // what there is to wait for
	// Until is when the next URL comes due or the next lease runs out, whichever
	// is earlier. An Add, Ack, Hold or UnparkMatchingURLs may bring one earlier.
	Until time.Time
	// PollAt is when to ask again at the latest, whatever Until is: other processes may
	// have brought one earlier. Zero if the store is of one process.
	PollAt time.Time
	// LossGeneration counts how often the store may have lost what it was told last, though the
	// process goes on: one of its servers was started again, or another took over. What
	// was lost is given out again, and what is found then may be new again. It is right
	// with leases, too, and 0 if the store is of one process.
	LossGeneration uint64
}
