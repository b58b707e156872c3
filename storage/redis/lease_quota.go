package redis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis/internal/client"
)

// A partitionLeaseQuota is how many leases a partition is to give at most, of hosts that
// are due by dueBy.
type partitionLeaseQuota struct {
	*client.Partition
	maxLeases      int
	dueBy          int64
	summaryVersion int64 // of the summary that the quota was made from
}

// partitionLeaseQuotas returns which partitions are to give leases of the hosts that are due
// longest, at most maxLeases. The due times of the first hosts of a partition are known:
// what is due after the last of them, where there may be more, is left to another call.
func (l *leaser) partitionLeaseQuotas(now int64, maxLeases int) []partitionLeaseQuota {
	type dueHost struct {
		quota int // index in all
		at    int64
	}
	var all []partitionLeaseQuota
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
		all = append(all, partitionLeaseQuota{Partition: p, summaryVersion: sum.Version})
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
		all[t.quota].maxLeases++
		all[t.quota].dueBy = t.at
	}
	return slices.DeleteFunc(all, func(h partitionLeaseQuota) bool { return h.maxLeases == 0 })
}

// backOffPartitionIfOvertaken leaves a partition to other processes for a moment, if one was
// faster: processes that wait for the same hosts would all call for each of them, and one
// would get it. So the fastest goes on alone, as long as it has workers, and the others look
// what is left.
func (l *leaser) backOffPartitionIfOvertaken(h *partitionLeaseQuota) {
	if sum, up := h.LastSummary(); up && sum.Version != h.summaryVersion {
		h.LeaveUpcomingHostsToOthers(time.Now().Add(l.summaries.interval + rand.N(l.summaries.interval)).UnixMicro())
	}
}
