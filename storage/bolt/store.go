package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A Store is a storage.Store in a file. Use Open. All methods may be called concurrently.
//
// Its methods lock the engine, begin a read transaction where they need the file, and call the part
// that has the data.
type Store struct {
	noteTable // has the engine, whose lock guards the other fields
	seen      seenSet
	queues    urlQueues
	leases    leaseTable
}

var (
	_ storage.Store           = (*Store)(nil)
	_ storage.Inspector       = (*Store)(nil)
	_ storage.NextDueReporter = (*Store)(nil)
	_ storage.OriginLister    = (*Store)(nil)
	_ storage.Importer        = (*Store)(nil)
	_ storage.FailureNotifier = (*Store)(nil)
)

// Open opens the store at path and creates it if it does not exist. Only one process can have it
// open. The error says what to do: the file is in use, damaged, of a newer format, or no store. The
// caller must call Close.
func Open(path string, opts Options) (*Store, error) {
	e, meta, totals, err := openEngine(path, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{noteTable: noteTable{e}}
	s.seen = seenSet{journal: e.journal, damageReporter: &e.damage, count: totals.seenCount}
	s.queues = urlQueues{
		journal: e.journal, damageReporter: &e.damage, heads: &e.heads, index: e.index, parkedCount: totals.parkedCount,
	}
	s.leases = leaseTable{
		schedule: &e.index.schedule, journal: e.journal, queues: &s.queues,
		leases: make(map[uint64]*lease), lastToken: (meta.openCount + 1) << 40,
	}
	e.start()
	return s, nil
}

// Add implements storage.Store.
func (s *Store) Add(ctx context.Context, entries []storage.Entry, maxPerOrigin int) ([]storage.AddOutcome, error) {
	if err := storage.ValidateEntries(entries); err != nil {
		return nil, err
	}
	results := make([]storage.AddOutcome, len(entries))
	err := s.engine.change(ctx, func(tx *bbolt.Tx) (err error) {
		c := tx.Bucket([]byte(bucketFingerprints)).Cursor()
		for i := range entries {
			if results[i], err = s.addEntryIfNew(tx, c, &entries[i], maxPerOrigin); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// addEntryIfNew queues e unless it is a duplicate or its origin has reached maxPerOrigin. c is a
// cursor of the fingerprints.
func (s *Store) addEntryIfNew(
	tx *bbolt.Tx, c *bbolt.Cursor, e *storage.Entry, maxPerOrigin int,
) (storage.AddOutcome, error) {
	// First ask the file about an origin that is not in memory: the origin need not be loaded for a
	// duplicate.
	if known, err := s.isDuplicateOfNonresidentOrigin(tx, c, e); known || err != nil {
		return storage.Duplicate, err
	}
	o, err := s.engine.index.getOrCreate(tx, e.URL.Origin())
	if err != nil {
		return 0, err
	}
	if e.RobotsFor.IsZero() {
		p := requestFingerprintOf(e)
		seen, certain := s.seen.has(c, o, p)
		if seen || !certain && !e.Request.IsSafe() { // damaged: the request may have been sent
			return storage.Duplicate, nil
		}
		if maxPerOrigin > 0 && o.seenCount >= maxPerOrigin {
			return storage.OverLimit, nil
		}
		s.seen.add(o, p)
	}
	s.queues.put(o, schedule.LaneOf(e), schedule.RankOf(e), e)
	s.engine.index.schedule.UpdateOrigin(&o.Origin)
	return storage.Added, nil
}

// isDuplicateOfNonresidentOrigin reports whether e is a duplicate and its origin is on disk only.
// Most links lead to known pages: they must not bring an evicted host into memory.
func (s *Store) isDuplicateOfNonresidentOrigin(tx *bbolt.Tx, c *bbolt.Cursor, e *storage.Entry) (bool, error) {
	name := e.URL.Origin()
	if !e.RobotsFor.IsZero() || s.engine.index.origins[name] != nil {
		return false, nil
	}
	number, err := s.engine.index.number(tx, name)
	if number == nil || err != nil {
		return false, err
	}
	seen, certain := s.seen.hasOnDisk(c, binary.BigEndian.Uint32(number), name, requestFingerprintOf(e))
	return seen || !certain && !e.Request.IsSafe(), nil
}

// Lease implements storage.Store.
func (s *Store) Lease(
	ctx context.Context, now time.Time, ttl time.Duration, max int,
) ([]storage.Lease, storage.Wait, error) {
	if err := s.engine.lockIfOpen(ctx); err != nil {
		return nil, storage.Wait{}, err
	}
	defer s.engine.trimAndCommitIfDueThenUnlock()
	if s.engine.status.err != nil {
		return nil, storage.Wait{}, s.engine.status.err
	}
	// Return expired leases first: their URLs may be leased again below.
	s.engine.index.schedule.Advance(now)
	s.leases.expire(now)
	var leases []storage.Lease
	err := s.engine.file.view(func(tx *bbolt.Tx) error {
		for {
			// Also after the last lease, load the evicted hosts that are due: schedule.Wait needs them.
			if err := s.engine.index.reloadDueEvictedHosts(tx); err != nil || len(leases) >= max {
				return err
			}
			origin := s.engine.index.schedule.NextOrigin(now)
			if origin == nil {
				return nil
			}
			if l, ok := s.leases.leaseNext(tx, origin.Queue, now, now.Add(ttl)); ok {
				leases = append(leases, l)
			}
		}
	})
	if err != nil && len(leases) == 0 {
		return nil, storage.Wait{}, err
	}
	// With leases, an error is dropped: the next call meets it again.
	return leases, s.engine.index.schedule.Wait(), nil
}

// Renew implements storage.Store.
func (s *Store) Renew(ctx context.Context, l storage.Lease, now time.Time, ttl time.Duration) error {
	if err := s.engine.lockIfOpen(ctx); err != nil {
		return err
	}
	defer s.engine.mu.Unlock()
	return s.leases.renew(&l, now, now.Add(ttl))
}

// MarkSent implements storage.Store.
func (s *Store) MarkSent(ctx context.Context, l storage.Lease, sent bool) error {
	if err := s.engine.lockForChange(ctx); err != nil {
		return err
	}
	defer s.engine.trimAndCommitIfDueThenUnlock()
	return s.leases.markSent(&l, sent)
}

// Ack implements storage.Store.
func (s *Store) Ack(ctx context.Context, acks []storage.Ack) error {
	if err := storage.ValidateAcks(acks); err != nil {
		return err
	}
	if err := s.engine.lockForChange(ctx); err != nil {
		return err
	}
	defer s.engine.trimAndCommitIfDueThenUnlock()
	var errs []error
	for i := range acks {
		if err := s.leases.ack(&acks[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Hold implements storage.Store.
func (s *Store) Hold(ctx context.Context, name decorum.Origin, until time.Time, suspended bool) error {
	return s.engine.changeOrigin(ctx, name, func(o *residentOrigin) {
		o.Origin.HeldUntil, o.Suspended = until, suspended
		s.engine.journal.markChanged(o)
		s.engine.index.schedule.UpdateOrigin(&o.Origin)
	})
}

// RescheduleByLastmod implements storage.Store.
func (s *Store) RescheduleByLastmod(
	ctx context.Context, now time.Time, lastmods []storage.SitemapLastmod,
) (rescheduled int, err error) {
	err = s.engine.change(ctx, func(tx *bbolt.Tx) error {
		for _, g := range lastmods {
			o, err := s.engine.index.find(tx, g.URL.Origin())
			if err != nil {
				return err
			}
			if o != nil && s.queues.rescheduleIfModified(tx, o, g, now) {
				s.engine.index.schedule.UpdateOrigin(&o.Origin)
				rescheduled++
			}
		}
		return nil
	})
	return rescheduled, err
}

// UnparkMatchingURLs implements storage.Store. Each batch of batchSize URLs is atomic.
func (s *Store) UnparkMatchingURLs(
	ctx context.Context, name decorum.Origin, shouldUnpark func(storage.Entry) bool,
) (unparked int, err error) {
	if name.IsZero() {
		return s.unparkOfAllOrigins(ctx, shouldUnpark)
	}
	// end is the last sequence number of the origin at the beginning: URLs that are parked during
	// the call are not offered to shouldUnpark, since the caller that parks them has just evaluated
	// them.
	from, end := laneSlot{parkedLane, firstPosition}, int64(-1)
	for more := true; more; {
		err := s.engine.change(ctx, func(tx *bbolt.Tx) (err error) {
			o, err := s.engine.index.find(tx, name)
			if o == nil || o.parkedCount == 0 || err != nil {
				more = false
				return err
			}
			if end < 0 {
				end = o.lastSeq
			}
			var n int
			n, more = s.queues.unparkBatch(tx, o, &from, end, shouldUnpark)
			unparked += n
			s.engine.index.schedule.UpdateOrigin(&o.Origin)
			return nil
		})
		if err != nil {
			return unparked, err
		}
	}
	return unparked, nil
}

// unparkOfAllOrigins calls UnparkMatchingURLs for each origin that has parked URLs, and returns the
// sum.
func (s *Store) unparkOfAllOrigins(ctx context.Context,
	shouldUnpark func(storage.Entry) bool) (unparked int, err error) {
	var origins []decorum.Origin
	err = s.Origins(ctx, func(i storage.OriginInfo) bool {
		if i.ParkedURLs > 0 {
			origins = append(origins, i.Origin)
		}
		return true
	})
	for i := 0; i < len(origins) && err == nil; i++ {
		var n int
		n, err = s.UnparkMatchingURLs(ctx, origins[i], shouldUnpark)
		unparked += n
	}
	return unparked, err
}

// AdmitHostsWithinLimits implements storage.Store.
func (s *Store) AdmitHostsWithinLimits(
	ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostCountLimits,
) ([]storage.HostLimitResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	results := make([]storage.HostLimitResult, len(hosts))
	err := s.engine.change(ctx, func(tx *bbolt.Tx) error {
		// Each host counts for the limits of the next one.
		for i, h := range hosts {
			count, err := s.engine.admittedHosts.count(tx, h)
			if err != nil {
				return err
			}
			results[i] = limits.CheckNewHost(count, h.IgnoreLimits)
			if results[i] == storage.HostAdmitted {
				s.engine.journal.admitHost(h, count.DomainHosts+1)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// AdmittedHostTotalsFor implements storage.Store.
func (s *Store) AdmittedHostTotalsFor(
	ctx context.Context, h storage.HostToAdmit,
) (count storage.AdmittedHostTotals, err error) {
	err = s.engine.view(ctx, func(tx *bbolt.Tx) error {
		count, err = s.engine.admittedHosts.count(tx, h)
		return err
	})
	return count, err
}

// Import implements storage.Importer. Each dump is atomic.
func (s *Store) Import(ctx context.Context, dumps []storage.OriginDump) error {
	if err := storage.ValidateDumps(dumps); err != nil {
		return err
	}
	for i := range dumps {
		err := s.engine.change(ctx, func(tx *bbolt.Tx) error { return s.importOriginDump(tx, &dumps[i]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// importOriginDump adds the host's clock, the hold, the URLs and the fingerprints of a dump.
func (s *Store) importOriginDump(tx *bbolt.Tx, p *storage.OriginDump) error {
	o, err := s.engine.index.getOrCreate(tx, p.Origin)
	if err != nil {
		return err
	}
	if p.HostState != nil {
		o.host.SetState(*p.HostState)
		o.Origin.HeldUntil, o.Suspended = p.HeldUntil, p.Suspended
		s.engine.journal.markOriginAndHostChanged(o)
	}
	// Skip URLs that the seen set has, except redirects of a robots.txt. The fingerprints come last,
	// since they may include those of the URLs.
	c := tx.Bucket([]byte(bucketFingerprints)).Cursor()
	for i := range p.URLs {
		k := &p.URLs[i]
		if k.RobotsFor.IsZero() && !s.seen.addIfNew(c, o, requestFingerprintOf(&k.Entry)) {
			continue
		}
		s.queues.putByState(o, k)
	}
	for _, f := range p.SeenURLFingerprints {
		s.seen.addIfNew(c, o, urlFingerprint(f))
	}
	s.engine.index.schedule.UpdateOrigin(&o.Origin)
	return nil
}

// Counts implements storage.Inspector.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	if err := s.engine.lockIfOpen(ctx); err != nil {
		return storage.Counts{}, err
	}
	defer s.engine.mu.Unlock()
	counts := s.engine.index.schedule.Counts()
	counts.ParkedURLs, counts.SeenURLs = s.queues.parkedCount, s.seen.count
	return counts, nil
}

// FailureChannel implements storage.FailureNotifier.
func (s *Store) FailureChannel() <-chan struct{} { return s.engine.status.failedForGood }

// RecordedOutputExtents returns the lengths of the output files as of the store's last write, in the
// order of their paths.
func (s *Store) RecordedOutputExtents(ctx context.Context) ([]OutputFileExtent, error) {
	if err := s.engine.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer s.engine.mu.Unlock()
	return s.engine.outputFiles.byPath(), nil
}

// OutputMayBeTorn reports whether the ends of output files may be torn: the store was not closed
// cleanly before this or an earlier Open, and no lengths have been written since.
func (s *Store) OutputMayBeTorn() bool { return s.engine.outputFiles.mayBeTorn }

// Close implements storage.Store. It postpones each host with a leased URL by its LostVisitDelay, and
// at least by Options.PostInterruptionDelay, because the end of the visit is unknown. The minimum is
// for hosts whose first visit was leased, which have no LostVisitDelay yet.
func (s *Store) Close() error {
	return s.close(func() { s.leases.delayLeasedHosts(s.engine.opts.Now, s.engine.opts.PostInterruptionDelay) })
}
