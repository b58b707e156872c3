package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// unreachableRetryDelay is how often servers that do not answer are asked again.
const unreachableRetryDelay = time.Second

// summaryRefreshTimes is when all partitions were looked at last, and when they were asked.
type summaryRefreshTimes struct {
	sync.Mutex
	lastCheck, lastFullRefresh time.Time
}

// fullRefreshFactor is how often all partitions are asked, though nothing seems to have
// changed, in multiples of Options.PartitionRefreshInterval: a replica that took over may count changes
// otherwise than the master did.
const fullRefreshFactor = 20

// Lease implements storage.Store. It goes by what calls have said of the
// partitions, and asks all of them when there seems to be nothing, or when others
// may have changed much.
func (s *Store) Lease(ctx context.Context, now time.Time, ttl time.Duration, maxLeases int) ([]storage.Lease, storage.Wait, error) {
	ctx, end, err := s.client.BeginCall(ctx)
	if err != nil {
		return nil, storage.Wait{}, err
	}
	defer end()
	s.client.Clock().AdvanceTo(now)
	if !s.wasRefreshedWithin(&s.summaryRefreshTimes.lastCheck, s.opts.PartitionRefreshInterval) {
		if err := s.refreshChangedPartitionSummaries(ctx); err != nil {
			return nil, storage.Wait{}, err
		}
	}
	leases, err := s.leaseLongestDue(ctx, now, ttl, maxLeases)
	if err == nil && len(leases) == 0 && (s.opts.usesCallerTime || s.nextWait(now).RemainingWorkKind != storage.RemainingPending) {
		if err = s.refreshAllPartitionSummaries(ctx); err == nil {
			leases, err = s.leaseLongestDue(ctx, now, ttl, maxLeases)
		}
	}
	if err != nil {
		return leases, storage.Wait{}, err
	}
	if len(leases) == 0 && s.client.Partitions().Reachable() == 0 {
		return nil, storage.Wait{}, fmt.Errorf("no server of the store answers: %w", storage.ErrWriteStalled)
	}
	return leases, s.nextWait(now), nil
}

// wasRefreshedWithin reports whether what was done at a time was done lately.
func (s *Store) wasRefreshedWithin(at *time.Time, maxAge time.Duration) bool {
	s.summaryRefreshTimes.Lock()
	defer s.summaryRefreshTimes.Unlock()
	return time.Since(*at) < maxAge
}

// refreshChangedPartitionSummaries asks those partitions what there is that have changed: to read the number of
// changes takes a server a small part of what it takes to say what there is.
func (s *Store) refreshChangedPartitionSummaries(ctx context.Context) error {
	if !s.wasRefreshedWithin(&s.summaryRefreshTimes.lastFullRefresh, fullRefreshFactor*s.opts.PartitionRefreshInterval) {
		return s.refreshAllPartitionSummaries(ctx)
	}
	start := time.Now()
	err := s.handleExpiryAndRefreshSummaries(ctx, s.client.ChangedOrUnreachablePartitions(ctx))
	s.summaryRefreshTimes.Lock()
	defer s.summaryRefreshTimes.Unlock()
	s.summaryRefreshTimes.lastCheck = start
	return err
}

// refreshAllPartitionSummaries asks all partitions what there is.
func (s *Store) refreshAllPartitionSummaries(ctx context.Context) error {
	start := time.Now()
	err := s.handleExpiryAndRefreshSummaries(ctx, s.client.Partitions())
	s.summaryRefreshTimes.Lock()
	defer s.summaryRefreshTimes.Unlock()
	s.summaryRefreshTimes.lastCheck, s.summaryRefreshTimes.lastFullRefresh = start, start
	return err
}

// handleExpiryAndRefreshSummaries asks partitions what there is, and has them deal with what has run out.
func (s *Store) handleExpiryAndRefreshSummaries(ctx context.Context, partitions []*client.Partition) error {
	for i, r := range s.client.TryUpdates(ctx, false, lua.Lease, client.CallsTo(partitions, s.leaseArgs(0, 0, 0)...)) {
		if _, err := s.parseAndTrackLeases(ctx, partitions[i], r, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// leaseLongestDue takes leases, of the hosts first that are due longest.
func (s *Store) leaseLongestDue(ctx context.Context, now time.Time, ttl time.Duration, maxLeases int) (leases []storage.Lease, err error) {
	if err := s.refreshPartitionSummariesAfterExpiry(ctx, now); err != nil {
		return nil, err
	}
	for attempts := 0; len(leases) < maxLeases && attempts < maxLeases+len(s.client.Partitions()); attempts++ {
		quotas := s.partitionLeaseQuotas(s.client.Clock().CallerOrLocalMicros(now), maxLeases-len(leases))
		if len(quotas) == 0 {
			break
		}
		quotas, err := s.recordLeaseTTLOfQuotas(ctx, quotas, ttl)
		if err != nil {
			return leases, err
		}
		more, err := s.leaseFromPartitions(ctx, quotas, ttl)
		leases = append(leases, more...)
		if err != nil {
			return leases, err
		}
	}
	return leases, nil
}

// refreshPartitionSummariesAfterExpiry has the partitions deal with what has run out.
func (s *Store) refreshPartitionSummariesAfterExpiry(ctx context.Context, now time.Time) error {
	for {
		var overdue []*client.Partition
		for _, p := range s.client.Partitions() {
			if sum, up := p.LastSummary(); up && sum.HasUnhandledExpiry(s.client.Clock().CallerOrLocalMicros(now)) {
				overdue = append(overdue, p)
			}
		}
		if len(overdue) == 0 {
			return nil
		}
		if err := s.handleExpiryAndRefreshSummaries(ctx, overdue); err != nil || !s.client.Clock().UsesCallerTime() {
			return err // by the server's clock it may not have run out yet
		}
	}
}

// recordLeaseTTLOfQuotas returns those quotas whose partitions have noted that leases run
// so long. Where no replica confirms it nothing is leased.
func (s *Store) recordLeaseTTLOfQuotas(ctx context.Context, quotas []partitionLeaseQuota, ttl time.Duration) ([]partitionLeaseQuota, error) {
	partitions := make([]*client.Partition, len(quotas))
	for i, q := range quotas {
		partitions[i] = q.Partition
	}
	if err := s.leaseTTLs.tryRecord(ctx, partitions, ttl); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(quotas, func(q partitionLeaseQuota) bool { return s.leaseTTLs.maxTTL(q.Partition) < ttl }), nil
}

// leaseFromPartitions takes shares of leases. A server that does not answer gives none.
func (s *Store) leaseFromPartitions(ctx context.Context, quotas []partitionLeaseQuota, ttl time.Duration) (leases []storage.Lease, err error) {
	calls := make([]client.Call, len(quotas))
	for i, h := range quotas {
		calls[i] = client.Call{Partition: h.Partition, Args: s.leaseArgs(ttl, h.dueBy, min(h.maxLeases, client.MaxBatchItems))}
	}
	sentAt := time.Now()
	var all []leaseWithHostDueTime
	defer s.client.CountUnconfirmedUpdate()
	for i, r := range s.client.TryUpdates(ctx, false, lua.Lease, calls) {
		more, e := s.parseAndTrackLeases(ctx, quotas[i].Partition, r, sentAt)
		all, err = append(all, more...), errors.Join(err, e)
		if len(more) == 0 && r.Err == nil && !s.opts.usesCallerTime {
			s.backOffPartitionIfOvertaken(&quotas[i])
		}
	}
	slices.SortStableFunc(all, func(a, b leaseWithHostDueTime) int { return cmp.Compare(a.dueSince, b.dueSince) })
	for _, t := range all {
		leases = append(leases, t.Lease)
	}
	return leases, err
}

// ignoreTransient returns why a call is given up that does not wait: nil if the server may
// answer a moment later, which is noted.
func ignoreTransient(ctx context.Context, c *client.Client, p *client.Partition, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !client.IsTransient(err) {
		return fmt.Errorf("lease: %w", err)
	}
	c.MarkUnreachable(p, err)
	return nil
}

// leaseArgs returns the arguments of lease.lua.
func (s *Store) leaseArgs(ttl time.Duration, dueBy int64, maxLeases int) []string {
	args := []string{client.DurationArg(ttl), s.client.Clock().LocalMicrosArg(dueBy), client.DurationArg(s.opts.interruptedDelay())}
	for range maxLeases {
		args = append(args, strconv.FormatUint(rand.Uint64(), 10))
	}
	return args
}

// A leaseWithHostDueTime is a lease and since when its host was due.
type leaseWithHostDueTime struct {
	storage.Lease
	dueSince int64
}

// parseAndTrackLeases reads what lease.lua returns, or why there is none. Records that make
// no sense are given up.
func (s *Store) parseAndTrackLeases(ctx context.Context, p *client.Partition, r client.UpdateReply, sentAt time.Time) ([]leaseWithHostDueTime, error) {
	if r.Err != nil {
		return nil, ignoreTransient(ctx, s.client, p, r.Err)
	}
	items, err := r.Rest.ToArray()
	if err != nil {
		return nil, client.ErrBadReply
	}
	var leases []leaseWithHostDueTime
	for _, m := range items {
		l, name, encoded, err := s.parseLease(m, r.ServerNow, sentAt)
		if err != nil {
			s.opts.OnDamaged(fmt.Errorf("a URL of %s is given up: %w", name, err))
			_, _, err := s.client.RunUpdate(ctx, p, false, lua.Ack, damagedLeaseAckArgs(l.Token, name)...)
			if err != nil {
				return leases, err
			}
			continue
		}
		s.heldLeases.add(p, &l.Lease, encoded)
		leases = append(leases, l)
	}
	return leases, nil
}

// parseLease reads one lease, the name of its origin, and its record.
func (s *Store) parseLease(m client.Reply, now int64, sentAt time.Time) (l leaseWithHostDueTime, origin, encoded string, err error) {
	f := client.NewReplyReader(m)
	l.Token = f.ReadUint64()
	l.Expires = s.client.Clock().LocalLeaseExpiry(f.ReadInt(), now, sentAt)
	origin = f.ReadString()
	encoded = f.ReadString()
	l.HostState = readHostState(f, s.client.Clock(), now)
	l.dueSince = s.client.Clock().ToLocalMicros(f.ReadInt(), now)
	if f.Err() != nil {
		return l, origin, encoded, f.Err()
	}
	o, ok := record.ParseOriginName(origin)
	if !ok {
		return l, origin, encoded, record.ErrDamaged
	}
	l.Entry, err = record.ParseEntry([]byte(encoded), o)
	return l, origin, encoded, err
}
