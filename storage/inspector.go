package storage

import (
	"context"
	"time"

	"github.com/decorum-crawler/decorum"
)

// An Inspector is a Store that can be asked what it holds, for reports,
// exports and the page of a daemon. What it tells is true of some moment
// during the call; a crawl may go on meanwhile. yield must not call the Store
// nor write to what it is given; it returns false to end the call.
type Inspector interface {
	// Counts returns how much of what the store holds.
	Counts(ctx context.Context) (Counts, error)
	// Origins tells of all origins that were ever met, in no order. The zero
	// Origin, which a crawl may keep notes for that are its own, is not one.
	Origins(ctx context.Context, yield func(OriginInfo) bool) error
	// Origin tells of one; false if it was never met.
	Origin(ctx context.Context, o decorum.Origin) (OriginInfo, bool, error)
	// OriginURLsInState tells of the URLs of an origin that are in the state, in the order
	// in which they would be handed out. Leased ones count as Queued.
	OriginURLsInState(ctx context.Context, o decorum.Origin, state EntryState, yield func(Entry, time.Time) bool) error
	// HasSeen reports whether the seen set holds u, as asked for by GET.
	HasSeen(ctx context.Context, u decorum.URL) (bool, error)
	// SeenURLFingerprints tells the Fingerprints of the entries of an origin that the seen set
	// holds, in no order.
	SeenURLFingerprints(ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool) error
	// OriginNotes tells what SetNote kept for an origin, in no order.
	OriginNotes(ctx context.Context, o decorum.Origin, yield func(key string, value []byte) bool) error
}

// An OriginLister is an Inspector that lists the names of origins faster than Origins
// reads what it holds of them.
type OriginLister interface {
	// OriginNames calls yield with the origins that Origins tells of, in no order,
	// until yield returns false. yield must not call the Store.
	OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error
}

// An EntryState is where a URL is kept.
type EntryState uint8

// States.
const (
	StateQueued          EntryState = iota // to be visited; its time is when it was put off to, if it was
	StateAwaitingRevisit                   // visited, to be visited again at its time
	StateParked                            // disallowed, or out of scope
)

// An OriginInfo is what a Store holds of one origin.
type OriginInfo struct {
	Origin          decorum.Origin // whose URLs these are
	HostState       HostState      // the clock, shared by all origins of the host
	HeldUntil       time.Time      // its queue is shut until then; zero: it is not
	Suspended       bool           // the hold is one that nobody waits for
	QueuedURLs      int            // put off ones included
	LeasedURLs      int            // in hand
	AwaitingRevisit int            // wait for their revisit, or it has come
	ParkedURLs      int            // kept aside until UnparkMatchingURLs
	SeenURLs        int            // URLs ever queued
	// NextDue is when its next URL can be handed out, were there a slot: zero if
	// there is none, and at any time that has passed if it waits for nothing.
	NextDue time.Time
}

// Counts is how much a Store holds.
type Counts struct {
	QueuedHosts     int // with at least one URL queued, leased or put off
	DueHosts        int // of them, with a URL that could be leased now
	QueuedURLs      int // URLs in queues, put off ones included, leased ones not
	LeasedURLs      int // in hand
	ParkedURLs      int // kept aside: disallowed, or out of scope
	AwaitingRevisit int // pages that wait for their revisit, or whose revisit has come
	SuspendedURLs   int // of QueuedURLs, under a dormant hold
	SeenURLs        int // in the seen set: ever queued
}
