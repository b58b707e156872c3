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

// unreachableRetryDelay is how long a caller of Lease waits before the next call while a server
// does not answer.
const unreachableRetryDelay = time.Second

// urlLeaser leases URLs, and first those of the hosts that have been due for longest.
type urlLeaser struct {
	client    *client.Client
	summaries *summaryRefresher
	held      *heldLeases
	ttls      *leaseTTLRecorder
	onDamaged func(error) // Options.OnDamaged
}

// Lease implements storage.Store. It chooses partitions by their last summaries, and refreshes
// those of changed partitions once per interval. It refreshes all summaries before it returns no
// lease and a Wait that says that nothing is pending. It returns storage.ErrWriteStalled if no
// server answers.
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
	// Another process may have added URLs: say that nothing is left only by fresh summaries.
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

// leaseLongestDue returns at most maxLeases leases, by the summaries that are known.
func (l *urlLeaser) leaseLongestDue(
	ctx context.Context, now time.Time, ttl time.Duration, maxLeases int,
) (leases []storage.Lease, err error) {
	if err := l.summaries.refreshExpired(ctx, now); err != nil {
		return nil, err
	}
	// Each round uses the summaries that the calls of the round before returned. The number of
	// rounds is bounded, because other processes may take the leases in each round.
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

// recordLeaseTTLOfRequests records ttl in the partitions of the requests. It returns the requests
// whose partitions have recorded it: where no replica has confirmed the record, nothing is leased.
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
	return slices.DeleteFunc(requests, func(q partitionLeaseRequest) bool { return l.ttls.maxTTL(q.Partition) < ttl }),
		nil
}

// leaseFromPartitions makes one call for each request, and returns all leases, longest due first.
// A server that does not answer gives no lease.
func (l *urlLeaser) leaseFromPartitions(
	ctx context.Context, requests []partitionLeaseRequest, ttl time.Duration,
) (leases []storage.Lease, err error) {
	calls := make([]client.ScriptCall, len(requests))
	for i, q := range requests {
		maxLeases := min(q.maxLeases, client.MaxBatchItems)
		args := leaseArgs(l.client.ScriptClock(), ttl, q.dueBy, l.summaries.interruptedDelay, maxLeases)
		calls[i] = client.ScriptCall{Partition: q.Partition, Args: args}
	}
	sentAt := time.Now() // from here on the local time of a lease's expiry is counted
	var all []leaseWithHostDueSince
	defer l.client.CountUnconfirmedUpdate()
	for i, r := range l.client.TryUpdates(ctx, false, lua.Lease, calls) {
		more, e := l.parseAndTrackLeases(ctx, requests[i].Partition, r, sentAt)
		all, err = append(all, more...), errors.Join(err, e)
		// The summary promised a due host and there was none: another process was faster.
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

// ignoreTransient handles the error of a call that is not repeated. If the server of p may answer
// later, it marks the partition unreachable and returns nil; otherwise it returns the error.
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

// leaseArgs returns the arguments of lease.lua, with maxLeases random tokens. dueBy is in
// microseconds of this process's clock.
func leaseArgs(
	c *client.ScriptClock, ttl time.Duration, dueBy int64, interruptedDelay time.Duration, maxLeases int,
) []string {
	args := []string{client.DurationArg(ttl), c.LocalMicrosArg(dueBy), client.DurationArg(interruptedDelay)}
	for range maxLeases {
		args = append(args, strconv.FormatUint(rand.Uint64(), 10))
	}
	return args
}

// A leaseWithHostDueSince is a lease and the time since when its host was due, in microseconds of
// this process's clock.
type leaseWithHostDueSince struct {
	storage.Lease
	dueSince int64
}

// parseAndTrackLeases returns the leases in a reply of lease.lua, and adds them to the held leases.
// URLs whose records cannot be decoded are reported to onDamaged, and acked so that they leave
// their queues.
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
			// One bad record must not block its queue: end its lease.
			l.onDamaged(fmt.Errorf("dropped a URL of %s, whose record is damaged: %w", name, err))
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

// parseLease returns one lease, the name of its origin, and its record. now is the server's time,
// sentAt the local time when the call was sent.
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

// nextWait returns when to call Lease again. While a server does not answer, URLs on it are pending,
// and the next call is due after unreachableRetryDelay.
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

// waitOfSummary returns what remains and until when to wait for it, by the rules of package
// schedule. now is in microseconds.
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

// A partitionLeaseRequest asks one partition for leases.
type partitionLeaseRequest struct {
	*client.Partition
	maxLeases      int   // at most this many
	dueBy          int64 // only of hosts that are due at this time, in microseconds, or earlier
	summaryVersion int64 // the version of the summary from which the request was made
}

// partitionLeaseRequests returns requests for at most maxLeases leases together, of the hosts that
// have been due for longest. A summary has the due times of the first hosts of its partition only
// (client.MaxDueTimes). Where there may be more, hosts due after the last known time are left to
// another call, so that no host goes before one that has been due for longer.
func (l *urlLeaser) partitionLeaseRequests(now int64, maxLeases int) []partitionLeaseRequest {
	type dueHost struct {
		request int // index in all
		at      int64
	}
	var all []partitionLeaseRequest
	var dueHosts []dueHost
	horizon := now // hosts due after it may come after unknown ones
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
	// Give the leases to the partitions of the hosts that have been due for longest.
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

// backOffPartitionIfOvertaken leaves a partition to other processes for one to two intervals, if
// its summary changed between request and reply: then another process has taken the leases.
// Otherwise all processes that wait for the same hosts would call for each of them, and one would
// get it. So the fastest process leases from the partition alone, as long as it has workers, and
// the others take what is left.
func (l *urlLeaser) backOffPartitionIfOvertaken(h *partitionLeaseRequest) {
	if sum, up := h.LastSummary(); up && sum.Version != h.summaryVersion {
		h.LeaveUpcomingHostsToOthers(time.Now().Add(l.summaries.interval + rand.N(l.summaries.interval)).UnixMicro())
	}
}
