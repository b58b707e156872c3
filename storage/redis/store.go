package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/redis/coord"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A Store is a storage.Store and a storage.Inspector on Redis Cluster. Use Open.
// Any number of processes may have the same store open.
type Store struct {
	client       *client.Client
	flushTimeout time.Duration // how long a Flush waits for servers

	leaser    *leaser
	leases    *leaseHolder
	revisits  *revisitScheduler
	parked    *parkedURLs
	notes     *noteStore
	hosts     *hostCounter
	inspector *inspector
	importer  *importer
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.Inspector = (*Store)(nil)
	_ storage.Importer  = (*Store)(nil)
)

// Add implements storage.Store. If it fails, some entries may have been queued: of
// those it says Duplicate when it is called again.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	batches := s.client.Partitions().Batches(len(entries), func(i int) (string, []string) {
		e := &entries[i]
		o, fingerprint := e.URL.Origin(), ""
		if e.RobotsFor.IsZero() {
			fingerprint = fingerprintArg(e.RequestFingerprint())
		}
		return o.Host(), []string{o.String(), o.Host(), laneArg(e), rankArg(e), fingerprint, encodeEntry(e)}
	})
	results := make([]storage.AddOutcome, len(entries))
	commonArgs := []string{strconv.Itoa(maxPerOrigin)}
	err = s.client.SendBatches(ctx, batches, true, lua.Add, commonArgs, func(i int, reply byte, _ bool) error {
		switch reply {
		case 'a':
			results[i] = storage.Added
		case 'k':
			results[i] = storage.Duplicate
		case 'o':
			results[i] = storage.OverLimit
		default:
			return client.ErrBadReply
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("add: %w", err)
	}
	return results, nil
}

// Lease implements storage.Store. It goes by what calls have said of the
// partitions, and asks all of them when there seems to be nothing, or when others
// may have changed much.
func (s *Store) Lease(
	ctx context.Context, now time.Time, ttl time.Duration, maxLeases int,
) ([]storage.Lease, storage.Wait, error) {
	return s.leaser.lease(ctx, now, ttl, maxLeases)
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	return s.leases.renew(ctx, l, now, ttl)
}

// MarkSent implements storage.Store. It is as safe as Add, at once.
func (s *Store) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	return s.leases.markSent(ctx, l, sent)
}

// Ack implements storage.Store. An ack that had to be sent again is not called
// stale: the lease may have been ended by the first.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) error { return s.leases.ack(ctx, acks) }

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	args := []string{o.String(), o.Host(), s.client.Clock().TimeArg(until), boolArg(suspended)}
	_, _, err = s.client.RunUpdate(ctx, s.client.PartitionOfHost(o.Host()), false, lua.Hold, args...)
	return err
}

// RescheduleByLastmod implements storage.Store.
func (s *Store) RescheduleByLastmod(
	ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod,
) (rescheduled int, err error) {
	return s.revisits.reschedule(ctx, now, lastmods)
}

// UnparkMatchingURLs implements storage.Store. Each portion is atomic.
func (s *Store) UnparkMatchingURLs(
	ctx context.Context, o decorum.Origin, shouldUnpark func(storage.Entry) bool,
) (unparked int, err error) {
	if o.IsZero() {
		return s.parked.unparkOfAllOrigins(ctx, shouldUnpark)
	}
	return s.parked.unpark(ctx, o, shouldUnpark)
}

// Counts implements storage.Inspector.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return storage.Counts{}, err
	}
	defer end()
	if err := s.client.RefreshSummaries(ctx, lua.Summary); err != nil {
		return storage.Counts{}, fmt.Errorf("counts: %w", err)
	}
	all, _ := s.client.Partitions().Total()
	return storage.Counts{
		QueuedHosts: int(all.HostCount), DueHosts: int(all.DueHosts), QueuedURLs: int(all.QueuedURLs),
		LeasedURLs: int(all.LeasedURLs), ParkedURLs: int(all.ParkedURLs), SeenURLs: int(all.SeenURLs),
		SuspendedURLs: int(all.SuspendedURLs), AwaitingRevisit: int(all.AwaitingRevisit),
	}, nil
}

// ReadNote implements storage.Store. What was read before is in memory, until the server
// says that one of the origin's notes has changed, or the connection to it is lost: a
// connection that is silent for a second is asked for a sign of life, and is lost after
// Options.Timeout.
func (s *Store) ReadNote(ctx context.Context, o decorum.Origin, key string) (value []byte, err error) {
	return s.notes.read(ctx, o, key)
}

// SetNote implements storage.Store. Who leases a URL after it was acked by who set a
// note of its origin before reads that note: by the connection by which it is told of
// the lease it was told of the note before.
func (s *Store) SetNote(ctx context.Context, o decorum.Origin, key string, value []byte) error {
	return s.notes.set(ctx, o, key, value)
}

// OriginNotes implements storage.Inspector, one value at a time: they may be large.
func (s *Store) OriginNotes(ctx context.Context, o decorum.Origin, yield func(key string, value []byte) bool) error {
	return s.notes.all(ctx, o, yield)
}

// AdmitHostsWithinLimits implements storage.Store. Its counts are as durable as what Add adds. If
// it fails, some hosts may have been counted.
func (s *Store) AdmitHostsWithinLimits(
	ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostAdmissionLimits,
) ([]storage.HostAdmissionResult, error) {
	return s.hosts.admit(ctx, hosts, limits)
}

// AdmittedHostTotalsFor implements storage.Store.
func (s *Store) AdmittedHostTotalsFor(ctx context.Context, h storage.HostToAdmit) (storage.HostAdmissionCounts, error) {
	return s.hosts.counts(ctx, h)
}

// Origins implements storage.Inspector, a portion at a time, in the order in which
// the origins of a partition were met.
func (s *Store) Origins(ctx context.Context, yield func(storage.OriginInfo) bool) error {
	return s.inspector.origins(ctx, yield)
}

// OriginNames implements storage.OriginLister, in the order of Origins.
func (s *Store) OriginNames(ctx context.Context, yield func(decorum.Origin) bool) error {
	return s.inspector.originNames(ctx, yield)
}

// Origin implements storage.Inspector.
func (s *Store) Origin(ctx context.Context, o decorum.Origin) (storage.OriginInfo, bool, error) {
	return s.inspector.origin(ctx, o)
}

// OriginURLsInState implements storage.Inspector. Leased URLs come first: there they go if
// their leases run out. Portions are read by their place: what moves meanwhile may
// be told twice, or not at all.
func (s *Store) OriginURLsInState(
	ctx context.Context, o decorum.Origin, state storage.EntryState, yield func(storage.Entry, time.Time) bool,
) error {
	return s.inspector.originURLs(ctx, o, state, yield)
}

// HasSeen implements storage.Inspector.
func (s *Store) HasSeen(ctx context.Context, u decorum.URL) (seen bool, err error) {
	return s.inspector.hasSeen(ctx, u)
}

// SeenURLFingerprints implements storage.Inspector. What is added meanwhile may be told twice.
func (s *Store) SeenURLFingerprints(ctx context.Context, o decorum.Origin, yield func(fingerprint uint64) bool) error {
	return s.inspector.seenFingerprints(ctx, o, yield)
}

// Import implements storage.Importer. If it fails, some of it may have been done. A call
// to a server whose answer was lost is made again, and does nothing twice.
func (s *Store) Import(ctx context.Context, dumps []storage.OriginDump) error {
	return s.importer.add(ctx, dumps)
}

// SharedLimits returns the limits that all processes keep to together that have the store
// open. They can be used until Close.
func (s *Store) SharedLimits() *coord.SharedLimits { return coord.NewSharedLimits(s.client) }

// SharedValues returns the values that all processes read that have the store open. They
// can be used until Close.
func (s *Store) SharedValues() *coord.SharedValues { return coord.NewSharedValues(s.client) }

// flushTimeouts is how many times Options.Timeout a Flush waits for servers that
// do not answer: replicas take over in less.
const flushTimeouts = 6

// Flush implements storage.Store: what is not where Options.Durability wants it
// yet is waited for, though not for good: then it returns storage.ErrWriteStalled.
func (s *Store) Flush(ctx context.Context) error {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	ctx, cancel := context.WithTimeoutCause(ctx, s.flushTimeout, storage.ErrWriteStalled)
	defer cancel()
	return s.confirmEarlierUpdates(ctx)
}

// confirmEarlierUpdates has a replica confirm a change of each partition, and so all
// before it, unless all that was changed has been confirmed.
func (s *Store) confirmEarlierUpdates(ctx context.Context) error {
	return s.client.ConfirmEarlierUpdates(ctx, lua.SetNote, "", "", "flushed", "")
}

// closeTimeout is how long Close waits for servers. What it tells them spares other
// processes a wait, and nothing is lost without it.
const closeTimeout = 2 * time.Second

// Close implements storage.Store. Of servers that do not answer, leases that are out run
// out by themselves, and what was acked last may be visited again when their replicas take
// over; then it returns an error that wraps storage.ErrWriteStalled.
func (s *Store) Close() error {
	return s.client.Close(func() error {
		ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, storage.ErrWriteStalled)
		defer cancel()
		return errors.Join(s.leases.returnAll(ctx), s.confirmEarlierUpdates(ctx))
	})
}
