package storage

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Inspector is a Store that reports its contents, for reports, exports and the web page of the
// daemon. A crawl may run during the call: the result is correct for some moment of the call.
//
// The methods with a yield function call it once for each item and end early when it returns false.
// yield must not call the Store and must not write to its arguments.
type Inspector interface {
	// Counts returns the size of the Store.
	Counts(ctx context.Context) (Counts, error)
	// Origins yields every origin that the Store has ever been given, in no particular order. It
	// omits the zero Origin, which has the crawl's own notes.
	Origins(ctx context.Context, yield func(OriginInfo) bool) error
	// Origin returns the contents for one origin, and false if the Store was never given it.
	Origin(ctx context.Context, o decorum.Origin) (OriginInfo, bool, error)
	// OriginURLsInState yields the URLs of an origin in a state, in the order in which Lease would
	// return them, each with its StoredEntry.NotBefore. Leased URLs count as queued.
	OriginURLsInState(ctx context.Context, o decorum.Origin, state EntryState, yield func(Entry, time.Time) bool) error
	// HasSeen reports whether the seen set holds a GET of u.
	HasSeen(ctx context.Context, u decorum.URL) (bool, error)
	// SeenURLFingerprints yields the RequestFingerprints that the seen set holds of an origin, in
	// no particular order.
	SeenURLFingerprints(ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool) error
	// OriginNotes yields the notes of an origin, in no particular order.
	OriginNotes(ctx context.Context, o decorum.Origin, yield func(key string, value []byte) bool) error
}

// An OriginLister lists the names of origins faster than Inspector.Origins, which also reads the
// contents of each.
type OriginLister interface {
	// OriginNames calls yield with each origin that Origins would yield, in no particular order,
	// until yield returns false. yield must not call the Store.
	OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error
}

// An EntryState says where a Store keeps a URL.
type EntryState uint8

// States.
const (
	StateQueued          EntryState = iota // in a queue or leased, with an optional retry time
	StateAwaitingRevisit                   // visited, with the time of the next visit
	StateParked                            // disallowed or out of scope, until UnparkMatchingURLs
)

// An OriginInfo describes the contents of a Store for one origin.
type OriginInfo struct {
	Origin          decorum.Origin
	HostState       HostState // shared by all origins of the host
	HeldUntil       time.Time // end of the hold set by Hold; zero: no hold
	Suspended       bool      // the argument suspended of that Hold
	QueuedURLs      int       // in the queue, including those with a retry time, without leased ones
	LeasedURLs      int
	AwaitingRevisit int // pages whose revisit is scheduled, due or not
	ParkedURLs      int // disallowed or out of scope, until UnparkMatchingURLs
	SeenURLs        int // in the seen set: ever queued
	// NextDue is when the next URL of the origin can be leased, if its host has a free slot then.
	// It is zero if the origin has no URL to lease, and may be any time in the past if a URL can be
	// leased now.
	NextDue time.Time
}

// Counts are the numbers of items in a Store.
type Counts struct {
	QueuedHosts     int // hosts with at least one URL queued or leased
	DueHosts        int // of QueuedHosts, those with a URL that could be leased now
	QueuedURLs      int // in queues, including those with a retry time, without leased ones
	LeasedURLs      int
	ParkedURLs      int // disallowed or out of scope, until UnparkMatchingURLs
	AwaitingRevisit int // pages whose revisit is scheduled, due or not
	SuspendedURLs   int // of QueuedURLs, those under a hold with suspended set
	SeenURLs        int // in the seen set: ever queued
}
