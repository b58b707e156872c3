package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/internal/record"
	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// unreachableRetryDelay is how often servers that do not answer are asked again.
const unreachableRetryDelay = time.Second

// urlLeaser leases URLs, of the hosts first that are due longest.
type urlLeaser struct {
	client    *client.Client
	summaries *summaryRefresher
	held      *heldLeases
	ttls      *leaseTTLRecorder
	onDamaged func(error) // Options.OnDamaged
}

// Lease implements storage.Store. It goes by what calls have said of the
// partitions, and asks all of them when there seems to be nothing, or when others
// may have changed much.
func (l *urlLeaser) Lease(
	ctx context.Context, now time.Time, ttl time.Duration, maxLeases int,
) ([]storage.Lease, storage.Wait, error) {
	ctx, end, err := l.client.BeginCall(ctx)
	if err != nil {
		return nil, storage.Wait{}, err
	}
	defer end()
	l.client.ScriptClock().AdvanceTo(now)
	if err := l.summaries.refreshChanged(ctx); err != nil {
		return nil, storage.Wait{}, err
	}
	leases, err := l.leaseLongestDue(ctx, now, ttl, maxLeases)
	// Before it says that nothing is left, it asks all partitions.
	asksAll := func() bool {
		return l.client.ScriptClock().UsesCallerTime() || l.nextWait(now).RemainingWorkKind != storage.RemainingPending
	}
	if err == nil && len(leases) == 0 && asksAll() {
		if err = l.summaries.refreshAll(ctx); err == nil {
			leases, err = l.leaseLongestDue(ctx, now, ttl, maxLeases)
		}
	}
	if err != nil {
		return leases, storage.Wait{}, err
	}
	if len(leases) == 0 && l.client.Partitions().Reachable() == 0 {
		return nil, storage.Wait{}, fmt.Errorf("no server of the store answers: %w", storage.ErrWriteStalled)
	}
	return leases, l.nextWait(now), nil
}

// leaseLongestDue takes leases, of the hosts first that are due longest.
func (l *urlLeaser) leaseLongestDue(
	ctx context.Context, now time.Time, ttl time.Duration, maxLeases int,
) (leases []storage.Lease, err error) {
	if err := l.summaries.refreshExpired(ctx, now); err != nil {
		return nil, err
	}
	// Each round goes by the summaries that the round before has brought up to date. Rounds
	// are bounded: other processes may be faster in each.
	for attempts := 0; len(leases) < maxLeases && attempts < maxLeases+len(l.client.Partitions()); attempts++ {
		requests := l.partitionLeaseRequests(l.client.ScriptClock().CallerOrLocalMicros(now), maxLeases-len(leases))
		if len(requests) == 0 {
			break
		}
		requests, err := l.recordLeaseTTLOfRequests(ctx, requests, ttl)
		if err != nil {
			return leases, err
		}
		more, err := l.leaseFromPartitions(ctx, requests, ttl)
		leases = append(leases, more...)
		if err != nil {
			return leases, err
		}
	}
	return leases, nil
}

// recordLeaseTTLOfRequests returns those requests whose partitions have noted that leases run
// so long. Where no replica confirms it nothing is leased.
func (l *urlLeaser) recordLeaseTTLOfRequests(
	ctx context.Context, requests []partitionLeaseRequest, ttl time.Duration,
) ([]partitionLeaseRequest, error) {
	partitions := make([]*client.Partition, len(requests))
	for i, q := range requests {
		partitions[i] = q.Partition
	}
	if err := l.ttls.tryRecord(ctx, partitions, ttl); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(requests, func(q partitionLeaseRequest) bool { return l.ttls.maxTTL(q.Partition) < ttl }), nil
}

// leaseFromPartitions takes leases by requests. A server that does not answer gives none.
func (l *urlLeaser) leaseFromPartitions(
	ctx context.Context, requests []partitionLeaseRequest, ttl time.Duration,
) (leases []storage.Lease, err error) {
	calls := make([]client.ScriptCall, len(requests))
	for i, q := range requests {
		maxLeases := min(q.maxLeases, client.MaxBatchItems)
		args := leaseArgs(l.client.ScriptClock(), ttl, q.dueBy, l.summaries.interruptedDelay, maxLeases)
		calls[i] = client.ScriptCall{Partition: q.Partition, Args: args}
	}
	sentAt := time.Now()
	var all []leaseWithHostDueSince
	defer l.client.CountUnconfirmedUpdate()
	for i, r := range l.client.TryUpdates(ctx, false, lua.Lease, calls) {
		more, e := l.parseAndTrackLeases(ctx, requests[i].Partition, r, sentAt)
		all, err = append(all, more...), errors.Join(err, e)
		if len(more) == 0 && r.Err == nil && !l.client.ScriptClock().UsesCallerTime() {
			l.backOffPartitionIfOvertaken(&requests[i])
		}
	}
	slices.SortStableFunc(all, func(a, b leaseWithHostDueSince) int { return cmp.Compare(a.dueSince, b.dueSince) })
	for _, t := range all {
		leases = append(leases, t.Lease)
	}
	return leases, err
}

// ignoreTransient returns the error of a call that is not made again: nil, and it notes that
// the server of p does not answer, if the server may answer a moment later.
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
func leaseArgs(
	c *client.ScriptClock, ttl time.Duration, dueBy int64, interruptedDelay time.Duration, maxLeases int,
) []string {
	args := []string{client.DurationArg(ttl), c.LocalMicrosArg(dueBy), client.DurationArg(interruptedDelay)}
	for range maxLeases {
		args = append(args, strconv.FormatUint(rand.Uint64(), 10))
	}
	return args
}

// A leaseWithHostDueSince is a lease and since when its host was due.
type leaseWithHostDueSince struct {
	storage.Lease
	dueSince int64
}

// parseAndTrackLeases reads what lease.lua returns, or why there is none. Records that make
// no sense are given up.
func (l *urlLeaser) parseAndTrackLeases(
	ctx context.Context, p *client.Partition, r client.UpdateReply, sentAt time.Time,
) ([]leaseWithHostDueSince, error) {
	if r.Err != nil {
		return nil, ignoreTransient(ctx, l.client, p, r.Err)
	}
	items, err := r.Rest.ToArray()
	if err != nil {
		return nil, client.ErrBadReply
	}
	var leases []leaseWithHostDueSince
	for _, m := range items {
		one, name, encoded, err := parseLease(l.client.ScriptClock(), m, r.ServerNow, sentAt)
		if err != nil {
			l.onDamaged(fmt.Errorf("a URL of %s is given up: %w", name, err))
			_, _, err := l.client.RunUpdate(ctx, p, false, lua.Ack, damagedLeaseAckArgs(one.Token, name)...)
			if err != nil {
				return leases, err
			}
			continue
		}
		l.held.add(p, &one.Lease, encoded)
		leases = append(leases, one)
	}
	return leases, nil
}

// parseLease reads one lease, the name of its origin, and its record.
func parseLease(
	c *client.ScriptClock, m client.Reply, now int64, sentAt time.Time,
) (l leaseWithHostDueSince, origin, encoded string, err error) {
	f := client.NewReplyReader(m)
	l.Token = f.ReadUint64()
	l.Expires = c.LocalLeaseExpiry(f.ReadInt(), now, sentAt)
	origin = f.ReadString()
	encoded = f.ReadString()
	l.HostState = readHostState(f, c, now)
	l.dueSince = c.ToLocalMicros(f.ReadInt(), now)
	if f.Err() != nil {
		return l, origin, encoded, f.Err()
	}
	o, err := record.ParseOriginName(origin)
	if err != nil {
		return l, origin, encoded, err
	}
	l.Entry, err = record.ParseEntry([]byte(encoded), o)
	return l, origin, encoded, err
}

// nextWait returns when to ask again. What is on a server that does not answer is waited for.
func (l *urlLeaser) nextWait(callerNow time.Time) storage.Wait {
	now := l.client.ScriptClock().CallerOrLocalMicros(callerNow)
	all, up := l.client.Partitions().Total()
	next := waitOfSummary(&all, now)
	if !up {
		retryAt := client.MicrosToTime(now).Add(unreachableRetryDelay)
		next = storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: retryAt}
	}
	if !l.client.ScriptClock().UsesCallerTime() {
		next.PollAt = client.MicrosToTime(now).Add(l.summaries.interval)
	}
	next.LossGeneration = l.client.Failovers()
	return next
}

// waitOfSummary returns what is left, as package schedule says it.
func waitOfSummary(s *client.PartitionSummary, now int64) storage.Wait {
	switch {
	case s.LeasedURLs > 0 && (s.NextHostDue() == client.Never || s.NextLeaseExpiry < s.NextHostDue()):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: client.MicrosToTime(s.NextLeaseExpiry)}
	case s.LeasedURLs > 0 || s.QueuedURLs > s.SuspendedURLs || client.HasPassed(s.NextRevisit, now):
		return storage.Wait{RemainingWorkKind: storage.RemainingPending, Until: client.MicrosToTime(s.NextHostDue())}
	case s.SuspendedURLs > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingSuspended, Until: client.MicrosToTime(s.NextHoldEnd)}
	case s.AwaitingRevisit > 0:
		return storage.Wait{RemainingWorkKind: storage.RemainingRevisits, Until: client.MicrosToTime(s.NextRevisit)}
	}
	return storage.Wait{}
}

// A partitionLeaseRequest is how many leases a partition is to give at most, of hosts that
// are due by dueBy.
type partitionLeaseRequest struct {
	*client.Partition
	maxLeases      int
	dueBy          int64
	summaryVersion int64 // of the summary that the request was made from
}

// partitionLeaseRequests returns which partitions are to give leases of the hosts that are due
// longest, at most maxLeases. The due times of the first hosts of a partition are known:
// what is due after the last of them, where there may be more, is left to another call.
func (l *urlLeaser) partitionLeaseRequests(now int64, maxLeases int) []partitionLeaseRequest {
	type dueHost struct {
		request int // index in all
		at      int64
	}
	var all []partitionLeaseRequest
	var dueHosts []dueHost
	horizon := now
	for _, p := range l.client.Partitions() {
		sum, up := p.LastSummary()
		if !up || !client.HasPassed(sum.NextHostDue(), now) {
			continue
		}
		for _, at := range sum.FirstHostDueTimes {
			dueHosts = append(dueHosts, dueHost{len(all), at})
		}
		if len(sum.FirstHostDueTimes) == client.MaxDueTimes {
			horizon = min(horizon, sum.FirstHostDueTimes[client.MaxDueTimes-1])
		}
		all = append(all, partitionLeaseRequest{Partition: p, summaryVersion: sum.Version})
	}
	if len(all) == 1 {
		all[0].maxLeases, all[0].dueBy = maxLeases, now
		return all
	}
	slices.SortStableFunc(dueHosts, func(a, b dueHost) int { return cmp.Compare(a.at, b.at) })
	for i, t := range dueHosts {
		if i == maxLeases || t.at > horizon {
			break
		}
		all[t.request].maxLeases++
		all[t.request].dueBy = t.at
	}
	return slices.DeleteFunc(all, func(h partitionLeaseRequest) bool { return h.maxLeases == 0 })
}

// backOffPartitionIfOvertaken leaves a partition to other processes for a moment, if one was
// faster: processes that wait for the same hosts would all call for each of them, and one
// would get it. So the fastest goes on alone, as long as it has workers, and the others look
// what is left.
func (l *urlLeaser) backOffPartitionIfOvertaken(h *partitionLeaseRequest) {
	if sum, up := h.LastSummary(); up && sum.Version != h.summaryVersion {
		h.LeaveUpcomingHostsToOthers(time.Now().Add(l.summaries.interval + rand.N(l.summaries.interval)).UnixMicro())
	}
}
