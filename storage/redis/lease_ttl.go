package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A server that takes over may know none of the leases that the one before has given out.
// It waits for their end, whatever they are, if it knows how long they may run: so that is
// noted, and confirmed by a replica, before the first of them is given.

// announced returns those shares whose partitions have noted that leases run so long. Those
// that are not known to have note it now; where no replica confirms it nothing is leased.
func (s *Store) announced(ctx context.Context, shares []share, ttl time.Duration) ([]share, error) {
	var silent []*partition
	for _, h := range shares {
		if h.announced() < ttl {
			silent = append(silent, h.partition)
		}
	}
	if len(silent) == 0 {
		return shares, nil
	}
	began := s.calls.Load()
	for i, a := range s.trySafelyAll(ctx, announceScript, callsTo(silent, s.announcement(ttl))) {
		p, err := silent[i], a.err
		if err == nil {
			_, err = s.readRest(p, began, a.message)
		}
		if err == nil {
			p.announce(ttl)
		} else if err = s.excuse(ctx, p, err); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(shares, func(h share) bool { return h.announced() < ttl }), nil
}

// announce has the partition note that leases run so long, if it is not known to have.
func (s *Store) announce(ctx context.Context, p *partition, ttl time.Duration) error {
	if p.announced() >= ttl {
		return nil
	}
	_, _, err := s.call(ctx, p, true, announceScript, s.announcement(ttl))
	if err == nil {
		p.announce(ttl)
	}
	return err
}

// A connection that is silent is asked for a sign of life after silence at the latest, and
// is lost after Options.Timeout.
const silence = 2 * time.Second

// announcement returns the argument of record_lease_ttl.lua. A master that was stopped, or cut off,
// may give leases yet when it has been replaced: when it goes on it may answer who has asked
// by a connection that is not lost. So for that long a server that takes over waits, too.
func (s *Store) announcement(ttl time.Duration) string {
	return strconv.FormatInt(lengthOf(ttl+silence+s.opts.Timeout), 10)
}

// excuse returns why a call is given up that does not wait: nil if the server may answer
// a moment later, which is noted.
func (s *Store) excuse(ctx context.Context, p *partition, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !isPassing(err) {
		return fmt.Errorf("lease: %w", err)
	}
	s.lost(p, err)
	return nil
}
