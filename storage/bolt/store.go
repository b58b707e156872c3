package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum/storage"
)

// A Store is a storage.Store in a file. Use Open.
type Store struct {
	opts              Options
	file              storeFile
	committer         *committer
	leaveMemoryBudget func() // the SharedMemoryBudget

	mu     sync.Mutex // of all below
	closed bool
	memoryState
	journal *journal
}

// memoryState is what the crawl holds, as far as it is in memory.
type memoryState struct {
	index         *originIndex
	leases        leaseTable
	seen          seenSet
	queues        urlQueues
	admittedHosts admittedHostCounter

	heads headCache

	damage      damageReporter
	status      *writeStatus
	outputFiles outputFiles
}

var (
	_ storage.Store           = (*Store)(nil)
	_ storage.Inspector       = (*Store)(nil)
	_ storage.OriginLister    = (*Store)(nil)
	_ storage.FailureNotifier = (*Store)(nil)
)

// lockIfOpen locks s for a call that changes nothing on disk.
func (s *Store) lockIfOpen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return storage.ErrClosed
	}
	return nil
}

// lockForChange locks s for a call that changes something. It waits while too much is
// held. A store that has failed for good changes no more.
func (s *Store) lockForChange(ctx context.Context) error {
	for {
		if err := s.lockIfOpen(ctx); err != nil {
			return err
		}
		if s.status.hasFailed() {
			defer s.mu.Unlock()
			return s.status.err
		}
		if !s.journal.isFull() {
			return nil
		}
		attemptDone, stalled := s.status.attemptDone, s.status.err != nil
		s.mu.Unlock()
		if !stalled { // else the committer tries again in its own time
			s.committer.request()
		}
		select {
		case <-attemptDone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// trimUnlockAndCommitIfDue unlocks s after a call.
func (s *Store) trimUnlockAndCommitIfDue() {
	commitNow := s.status.err == nil && s.journal.shouldWriteNow()
	s.heads.trim()
	s.mu.Unlock()
	if commitNow {
		s.committer.request()
	}
}

// Counts implements storage.Store.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return storage.Counts{}, err
	}
	defer s.mu.Unlock()
	return storage.Counts{
		QueuedHosts:     s.index.schedule.HostCount,
		DueHosts:        s.index.schedule.CountDueHosts(),
		QueuedURLs:      s.index.schedule.QueuedURLCount,
		LeasedURLs:      s.index.schedule.LeasedURLCount(),
		ParkedURLs:      s.queues.parkedCount,
		SeenURLs:        s.seen.count,
		SuspendedURLs:   s.index.schedule.SuspendedURLCount,
		AwaitingRevisit: s.index.schedule.AwaitingRevisitCount,
	}, nil
}

// Open opens the store at path, and makes it if there is none. Only one
// process can have it open. Close must be called in the end.
func Open(path string, opts Options) (*Store, error) {
	s := &Store{
		opts:        opts.withDefaults(),
		memoryState: memoryState{},
	}
	s.damage = damageReporter{path: path, onDamaged: s.opts.OnDamaged}
	s.heads.opts = &s.opts
	s.admittedHosts.damage = &s.damage
	s.journal = newJournal(&s.opts, &s.damage, &s.admittedHosts)
	s.status = newWriteStatus(path, s.opts.OnStallChange)
	s.file = storeFile{path: path, status: s.status}
	s.seen = seenSet{journal: s.journal, damage: &s.damage}
	s.index = newOriginIndex(&s.opts, &s.damage, s.journal, &s.heads)
	s.queues = urlQueues{journal: s.journal, damage: &s.damage, heads: &s.heads, index: s.index}
	s.leases = leaseTable{schedule: &s.index.schedule, journal: s.journal, queues: &s.queues, leases: make(map[uint64]*lease)}
	s.committer = newCommitter(&s.mu, &s.opts, &s.file, s.journal, &s.outputFiles, s.index.keepRecent)
	if err := s.file.open(s.opts.noSync, s.load); err != nil {
		return nil, err
	}
	s.leaveMemoryBudget = s.opts.SharedMemoryBudget.addStore()
	go s.committer.run()
	return s, nil
}

// FileStats returns how large the file is.
func (s *Store) FileStats() (FileStats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.file.stats()
	f.UnappliedLogChanges = s.journal.loggedChangeCount
	return f, err
}

// AdmitHostsWithinLimits implements storage.Store.
func (s *Store) AdmitHostsWithinLimits(
	ctx context.Context, hosts []storage.HostToAdmit, limits storage.HostAdmissionLimits,
) ([]storage.HostAdmissionResult, error) {
	if err := storage.ValidateHostsToAdmit(hosts); err != nil {
		return nil, err
	}
	if err := s.lockForChange(ctx); err != nil {
		return nil, err
	}
	defer s.trimUnlockAndCommitIfDue()
	results := make([]storage.HostAdmissionResult, len(hosts))
	err := s.file.view(func(tx *bbolt.Tx) error {
		for i, h := range hosts {
			count, err := s.admittedHosts.count(tx, h)
			if err != nil {
				return err
			}
			results[i] = limits.CheckNewHost(count, h.IgnoreLimits)
			if results[i] == storage.HostAdmitted {
				s.journal.admitHost(h, count.DomainHosts+1)
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
func (s *Store) AdmittedHostTotalsFor(ctx context.Context, h storage.HostToAdmit) (count storage.HostAdmissionCounts, err error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return count, err
	}
	defer s.trimUnlockAndCommitIfDue()
	err = s.file.view(func(tx *bbolt.Tx) error {
		count, err = s.admittedHosts.count(tx, h)
		return err
	})
	return count, err
}

// FailureChannel implements storage.FailureNotifier.
func (s *Store) FailureChannel() <-chan struct{} { return s.status.failedForGood }

// Flush implements storage.Store. If the last write has failed, it tries again.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.lockIfOpen(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return s.committer.flush(ctx)
}

// Close implements storage.Store. Hosts of which a URL was out rest their Gap
// from now on, and PostInterruptionDelay at least, for those that have none yet: the end
// of its visit is not known. What is in the log stays there: the next one to
// open the file goes on from it. A store that has failed for good writes nothing at
// its end: the next Open finds what was durable before, as after a crash.
func (s *Store) Close() error {
	if err := s.lockIfOpen(context.Background()); err != nil {
		return err
	}
	s.closed = true
	if s.file.faulted {
		return s.closeFaulted()
	}
	s.leases.delayHosts(s.opts.Now, s.opts.PostInterruptionDelay)
	s.mu.Unlock()
	defer s.leaveMemoryBudget()
	s.committer.stop()
	return s.file.close()
}

// closeFaulted closes the file of a store that has faulted, without a call to bbolt. It
// requires the lock, and releases it.
func (s *Store) closeFaulted() error {
	err := fmt.Errorf("close: what was not flushed is lost: %w", s.status.err)
	close(s.committer.quit) // it may wait for bbolt for good
	s.status.signalAttemptDone()
	s.mu.Unlock()
	defer s.leaveMemoryBudget()
	return errors.Join(err, s.file.closeWithoutBbolt())
}

// OutputFiles returns the files that the store knows, by path, as of its last write.
func (s *Store) OutputFiles(ctx context.Context) ([]OutputFileExtent, error) {
	if err := s.lockIfOpen(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return outputFilesByPath(s.outputFiles.extents), nil
}

// OutputMayBeTorn reports whether files of output may be torn: the store was not closed in
// order before Open, or before an earlier Open, and has written no lengths since.
func (s *Store) OutputMayBeTorn() bool { return s.outputFiles.mayBeTorn }
