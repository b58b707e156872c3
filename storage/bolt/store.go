package bolt

import (
	"context"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/schedule"
)

// A Store is a storage.Store in a file. Use Open.
type Store struct {
	opts Options
	path string
	// unclean is what WasUnclean returns. Open sets it.
	unclean bool
	db      *bbolt.DB
	file    *os.File // of db
	// update is db.Update, which fails when the disk is full.
	update func(func(*bbolt.Tx) error) error

	kick  chan struct{} // asks the committer to write now
	quit  chan struct{} // closed to end it
	leave func()        // the Share
	ended chan struct{} // closed by it
	broke chan struct{} // closed when the store has failed for good

	mu     sync.Mutex // of all below
	closed bool
	state
	backlog
}

// state is what the crawl holds, as far as it is in memory.
type state struct {
	turns   schedule.Schedule[*origin]
	floor   time.Time // no host is due before
	crashed time.Time // when the file was last opened after an unclean stop
	hosts   map[string]*host
	origins map[decorum.Origin]*origin
	numbers map[uint32]*origin // the same, by number
	last    uint32             // number given to an origin
	leases  map[uint64]*lease
	token   uint64 // the last one given
	seen    int
	parked  int
	counted hostCounts

	cached int             // weight of the heads of lanes
	heads  []*origin       // that have some, or had: the first are forgotten first
	stale  int             // of heads, that were made idle since heads was cleared of them
	guests []*origin       // looked at, and kept for a while though they may hold nothing
	key    [urlKeyLen]byte // room for a key
	entry  []byte          // room for an entry

	reported map[string]bool // damaged places that were reported to Options.Damaged
	files    map[string]File // as the file holds them, by path
}

// backlog is what is not in its place in the file.
type backlog struct {
	redo          redo // changes since the last write
	unlogged      []*origin
	hostsUnlogged []*host
	writes        uint64 // number of the last write that was begun
	writing       *write // being written, or to be written again; nil if none is
	written       uint64 // number of the last write in the file
	failed        error  // of the last write; nil: it succeeded; wraps ErrFailed: no write follows
	faulted       bool   // bbolt faulted during a read: the store calls it no more
	attempt       chan struct{}
	logging

	held  int       // changes in memory, until they are folded
	dirty []*origin // with changes, to be folded in the next pass
	pass  []*origin // to be folded in this one, in the order of their numbers
	calm  bool      // nothing has changed since the last write
}

var (
	_ storage.Store        = (*Store)(nil)
	_ storage.Inspector    = (*Store)(nil)
	_ storage.OriginLister = (*Store)(nil)
	_ storage.Failer       = (*Store)(nil)
)

type lease struct {
	*schedule.Lease[*origin]
	entry storage.Entry
	slot  slot
}

// lock locks s for a call that changes nothing on disk.
func (s *Store) lock(ctx context.Context) error {
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

// begin locks s for a call that changes something. It waits while too much is
// held. A store that has failed for good changes no more.
func (s *Store) begin(ctx context.Context) error {
	for {
		if err := s.lock(ctx); err != nil {
			return err
		}
		if s.hasFailed() {
			defer s.mu.Unlock()
			return s.failed
		}
		if maxChanges := s.maxBufferedChanges(); s.held < maxChanges && s.logged < maxLogFactor*maxChanges {
			return nil
		}
		attempt, stalled := s.attempt, s.failed != nil
		s.mu.Unlock()
		if !stalled { // else the committer tries again in its own time
			s.wake()
		}
		select {
		case <-attempt:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end unlocks s after a call.
func (s *Store) end() {
	full := s.writing == nil && s.failed == nil && (s.redo.n >= s.opts.FlushSize || s.presses())
	s.trim()
	s.mu.Unlock()
	if full {
		s.wake()
	}
}

// Counts implements storage.Store.
func (s *Store) Counts(ctx context.Context) (storage.Counts, error) {
	if err := s.lock(ctx); err != nil {
		return storage.Counts{}, err
	}
	defer s.mu.Unlock()
	return storage.Counts{
		Hosts:   s.turns.Hosts,
		Due:     s.turns.Due(),
		Queued:  s.turns.Queued,
		Leased:  s.turns.Leased(),
		Parked:  s.parked,
		Seen:    s.seen,
		Dormant: s.turns.Dormant,
		Resting: s.turns.Resting,
	}, nil
}
