package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A server that takes over may know none of the leases that the one before has given out.
// It waits for their end, whatever they are, if it knows how long they may run: so that is
// noted, and confirmed by a replica, before the first of them is given.

// ensureLeaseTTLRecorded returns those shares whose partitions have noted that leases run so long. Those
// that are not known to have note it now; where no replica confirms it nothing is leased.
func (s *Store) ensureLeaseTTLRecorded(ctx context.Context, quotas []partitionLeaseQuota, ttl time.Duration) ([]partitionLeaseQuota, error) {
	var unrecorded []*partition
	for _, h := range quotas {
		if h.recordedMaxLeaseTTL() < ttl {
			unrecorded = append(unrecorded, h.partition)
		}
	}
	if len(unrecorded) == 0 {
		return quotas, nil
	}
	startSeq := s.replySeq.Load()
	for i, a := range s.transport.tryAllDurably(ctx, lua.RecordLeaseTTL, callsToPartitions(unrecorded, s.leaseTTLArgWithMargin(ttl))) {
		p, err := unrecorded[i], a.err
		if err == nil {
			_, err = s.parseAndApplyUpdateReply(p, startSeq, a.message)
		}
		if err == nil {
			p.raiseCachedMaxLeaseTTL(ttl)
		} else if err = s.ignoreTransient(ctx, p, err); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(quotas, func(h partitionLeaseQuota) bool { return h.recordedMaxLeaseTTL() < ttl }), nil
}

// recordLeaseTTL has the partition note that leases run so long, if it is not known to have.
func (s *Store) recordLeaseTTL(ctx context.Context, p *partition, ttl time.Duration) error {
	if p.recordedMaxLeaseTTL() >= ttl {
		return nil
	}
	_, _, err := s.runUpdateScript(ctx, p, true, lua.RecordLeaseTTL, s.leaseTTLArgWithMargin(ttl))
	if err == nil {
		p.raiseCachedMaxLeaseTTL(ttl)
	}
	return err
}

// A connection that is silent is asked for a sign of life after silence at the latest, and
// is lost after Options.Timeout.
const pingInterval = 2 * time.Second

// leaseTTLArgWithMargin returns the argument of record_lease_ttl.lua. A master that was stopped, or cut off,
// may give leases yet when it has been replaced: when it goes on it may answer who has asked
// by a connection that is not lost. So for that long a server that takes over waits, too.
func (s *Store) leaseTTLArgWithMargin(ttl time.Duration) string {
	return strconv.FormatInt(durationMicros(ttl+pingInterval+s.opts.Timeout), 10)
}

// ignoreTransient returns why a call is given up that does not wait: nil if the server may answer
// a moment later, which is noted.
func (s *Store) ignoreTransient(ctx context.Context, p *partition, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !isTransient(err) {
		return fmt.Errorf("lease: %w", err)
	}
	s.markUnreachableAndNotify(p, err)
	return nil
}
