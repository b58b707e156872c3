package storage

import (
	"context"
	"errors"
	"time"

	"github.com/decorum-crawler/decorum"
)

// Errors of a Store.
var (
	// ErrStaleLease is returned for a lease that has ended, or that expired and whose URL has
	// returned to its queue.
	ErrStaleLease = errors.New("lease ran out")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("store is closed")
	// ErrFull is returned by a call that would exceed a limit of the Store, such as
	// memory.Config.MaxURLs. The call has changed nothing.
	ErrFull = errors.New("store is full")
	// ErrWriteStalled is returned by Lease and Flush while the Store cannot write, because the disk
	// is full for example. Nothing is lost, and the Store recovers by itself when it can write
	// again.
	ErrWriteStalled = errors.New("nothing can be written for now")
	// ErrFailed is returned by Lease and by every call that changes the Store after it has failed
	// for good: its last writes may be missing on the disk, and another attempt would not show
	// that. A Store that is opened again has the state that was durable before.
	ErrFailed = errors.New("nothing can be written any more")
)

// A FailureNotifier is a Store that can fail for good. Every Store whose errors may wrap ErrFailed
// implements it.
type FailureNotifier interface {
	// FailureChannel returns a channel that is closed when the Store fails for good. A caller that
	// waits for a lease should then call Lease, which returns the reason.
	FailureChannel() <-chan struct{}
}

// A NextDueReporter is a Queue that knows without I/O when the next URL of a host can be leased.
type NextDueReporter interface {
	// NextURLDue returns when a URL of host can be leased next, and the zero time if the host has none to
	// lease, now or later. known is false if the Queue would have to read that first.
	NextURLDue(ctx context.Context, host string) (due time.Time, known bool)
}

// Limits on the arguments of a Store. A call that exceeds one returns an error and changes nothing.
const (
	MaxCallbackDataBytes = 64 << 10 // bytes of Entry.CallbackData
	MaxStatsBytes        = 2 << 10  // bytes of HostState.EncodedStats
	MaxValidatorBytes    = 1 << 10  // bytes of each string of VisitHistorySummary
	MaxBodyBytes         = 16 << 20 // bytes of NonGETRequest.Body
	MaxNoteBytes         = 16 << 20 // bytes of a note
)

// A Store is the state of one crawl. A URL belongs to the queue of its origin. The queues of one
// host (Origin.Host) share the host's clock and slots.
//
// Every call is atomic per host. It takes effect at once and becomes durable later, in the order of
// the calls: a crash loses the last calls, never one call out of the middle. All methods may be
// called concurrently. A call whose context is already cancelled returns the context's error and
// changes nothing.
type Store interface {
	Queue
	Notes
	Parking
	// HostAdmitter counts the hosts whose URLs the crawl queues.
	HostAdmitter

	// Flush makes all earlier calls durable.
	Flush(ctx context.Context) error
	// Close flushes and closes the Store. URLs that are leased return to their queues.
	Close() error
}

// A Queue holds the URLs to visit and leases them to workers.
type Queue interface {
	// Add queues the entries that the seen set does not hold, in their order, and adds them to the
	// seen set, while that holds fewer than maxPerOrigin entries of their origin (0: no limit).
	// Entries for one URL with different Requests count separately. Entries with RobotsFor set
	// (redirects of a robots.txt) are queued whatever the seen set and the limit, and do not
	// count. Add returns the outcome of each entry, or an error and no outcomes.
	Add(ctx context.Context, entries []Entry, maxPerOrigin int) ([]AddOutcome, error)

	// Lease takes at most max URLs of hosts that are due: no URL of a host before its Due, none of
	// an origin that is held, and never more URLs of a host at a time than its Slots. The host that
	// has been due longest goes first; within an origin the order is PriorityClass, then
	// PriorityRank, then the order of Add. Pages whose revisit is due take turns with URLs of
	// ClassNormal and ClassLate.
	//
	// A lease that is neither acked nor renewed within ttl expires: its URL returns to the head of
	// its queue, and the host is not due until LostVisitDelay after the expiry.
	//
	// If Lease returns no lease, Wait says when to call it again. While the Store cannot write,
	// Lease returns an error that wraps ErrWriteStalled, and after the Store has failed for good
	// one that wraps ErrFailed.
	Lease(ctx context.Context, now time.Time, ttl time.Duration, max int) ([]Lease, Wait, error)

	// Renew makes the lease expire ttl after now. It returns an error that wraps ErrStaleLease if
	// the lease has ended or expired by now.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) error

	// MarkSent sets Entry.Sent of a leased URL. The value stays however the lease ends: every later
	// lease of the URL has it. It survives a crash once a Flush after it has returned. MarkSent
	// returns an error that wraps ErrStaleLease if the lease has ended.
	MarkSent(ctx context.Context, l Lease, sent bool) error

	// Ack ends leases. If some of the leases have ended before, the other acks take effect, and Ack
	// returns an error that wraps ErrStaleLease. Ack has no time argument: it accepts a lease after
	// Expires, too, until a call of Lease returns the URL to its queue.
	Ack(ctx context.Context, acks []Ack) error

	// Hold stops the queue of the origin until the given time; the zero time ends the hold. A new
	// hold replaces the one before. A redirect of the origin's own robots.txt that stays on the
	// origin (RobotsFor is the origin of its URL) is exempt: it is leased during the hold, ahead of
	// the queue. suspended says that callers should not wait for the end of the hold: see
	// RemainingSuspended.
	Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error
}

// Parking brings back URLs that are outside the queue: parked URLs, and pages that await their
// revisit.
type Parking interface {
	// RescheduleByLastmod makes a page that awaits its revisit due at now if the page was modified
	// after its last visit, and sets its VisitHistorySummary.SitemapLastmod. It skips URLs that
	// await no revisit, and returns the number of pages that it changed.
	RescheduleByLastmod(ctx context.Context, now time.Time, lastmods []SitemapLastmod) (rescheduled int, err error)

	// UnparkMatchingURLs calls shouldUnpark with each parked URL of the origin, and queues again
	// those for which it returns true. It works in batches: a crash may leave the last ones parked.
	// The zero Origin stands for every origin that has parked URLs. shouldUnpark must not call the
	// Store. UnparkMatchingURLs returns the number of URLs that it queued.
	UnparkMatchingURLs(ctx context.Context, o decorum.Origin, shouldUnpark func(Entry) bool) (unparked int, err error)
}

// A SitemapLastmod is a sitemap's claim of when a page was last modified.
type SitemapLastmod struct {
	URL      decorum.URL // the page
	Modified time.Time   // as the sitemap says
}

// A HostState is the clock of one host, with the figures that politeness keeps for it.
type HostState struct {
	Due                 time.Time     // earliest start of the next visit
	LostVisitDelay      time.Duration // delay after a visit whose end was not recorded
	Slots               int           // concurrent visits; 0 means 1
	ConsecutiveFailures int           // failed visits in a row, as the back-off counts them
	// EncodedStats is the crawl's statistics of the host, at most MaxStatsBytes bytes. The Store
	// does not read them; callers and Stores never write to the slice.
	EncodedStats []byte
}

// An AddOutcome is what Add did with an entry.
type AddOutcome uint8

// Results of Add.
const (
	Added     AddOutcome = iota // queued
	Duplicate                   // dropped: the seen set held it
	OverLimit                   // dropped: its origin has reached maxPerOrigin
)

// CountAdded returns the number of results that are Added.
func CountAdded(results []AddOutcome) (n int) {
	for _, f := range results {
		if f == Added {
			n++
		}
	}
	return n
}

// A Lease gives its holder the right to visit one URL until Expires.
type Lease struct {
	Entry
	HostState HostState // the host's state when the lease began
	Token     uint64    // identifies the lease; unique within the life of a Store
	Expires   time.Time // when the URL may be leased again
}

// An AckOutcome says where a URL goes when its lease ends.
type AckOutcome uint8

// Outcomes of a lease.
const (
	Done    AckOutcome = iota // visited: leaves the queue, stays in the seen set
	Requeue                   // not visited: returns to the head of its queue
	RetryAt                   // failed: queued again, not leased before Ack.NotBefore, then first of its class
	Park                      // disallowed: leaves the queue until UnparkMatchingURLs
	Drop                      // given up: leaves the queue, stays in the seen set
	// RevisitAt: visited, and awaits its revisit at Ack.NotBefore. A redirect of a robots.txt is Done.
	RevisitAt
)

// An Ack ends a lease.
type Ack struct {
	// Lease is the lease that ends. If the Store keeps the URL (Requeue, RetryAt, Park,
	// RevisitAt), it keeps the Entry as it is here, except for RobotsFor and Sent. The caller
	// therefore counts FailedAttempts and sets VisitHistorySummary before the Ack.
	Lease     Lease
	Outcome   AckOutcome // where the URL goes
	NotBefore time.Time  // of RetryAt and RevisitAt: the earliest time of the next lease
	// HostState is the host's new state after a visit; nil leaves it unchanged. Due never moves
	// back: the later of the old and the new time applies.
	HostState *HostState
}

// A RemainingWorkKind says what remains when Lease returns no lease.
type RemainingWorkKind uint8

// Kinds of remaining work.
const (
	// RemainingNone: no URL is queued or leased, and no page awaits a revisit. Parked URLs do not
	// count.
	RemainingNone RemainingWorkKind = iota
	// RemainingRevisits: only pages whose revisit is not due yet. Wait.Until is the first revisit.
	RemainingRevisits
	// RemainingSuspended: only URLs under a hold with suspended set, and pages whose revisit is not
	// due yet. Wait.Until is the earliest end of such a hold.
	RemainingSuspended
	// RemainingPending: URLs wait for their host, hold or retry time, or are leased.
	RemainingPending
)

// A Wait says when to call Lease again after it returned no lease.
type Wait struct {
	RemainingWorkKind RemainingWorkKind // what there is to wait for
	// Until is when the next URL becomes due or the next lease expires, whichever is earlier. An
	// Add, Ack, Hold, RescheduleByLastmod or UnparkMatchingURLs may make a URL due earlier.
	Until time.Time
	// PollAt is the latest time to call Lease again, whatever Until is: other processes may have
	// made a URL due earlier. It is zero if the Store belongs to one process.
	PollAt time.Time
	// LossGeneration counts the events after which the Store may have lost its last changes while
	// this process continued: a server restarted, or another one took over. URLs whose acks were
	// lost are leased again, and their links may be new again. It is also set when Lease returns
	// leases. It is 0 if the Store belongs to one process.
	LossGeneration uint64
}
