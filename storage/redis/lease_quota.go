package redis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A share is how many leases a partition is to give at most, of hosts due by bound.
type share struct {
	*partition
	maxLeases int
	bound     int64
	version   int64 // of what is known of it
}

// shares says who is to give the leases of hosts that are due longest, at most max.
// Of a partition the first turns are known: what is due after the last of them, where
// there may be more, is left to another call.
func (s *Store) shares(now int64, max int) []share {
	type turn struct {
		of int // of the partitions that have turns
		at int64
	}
	var all []share
	var turns []turn
	horizon := now
	for _, p := range s.partitions {
		sum, up := p.known()
		if !up || !hasCome(sum.turn(), now) {
			continue
		}
		for _, at := range sum.turns {
			turns = append(turns, turn{len(all), at})
		}
		if len(sum.turns) == ahead {
			horizon = min(horizon, sum.turns[ahead-1])
		}
		all = append(all, share{partition: p, version: sum.version})
	}
	if len(all) == 1 {
		all[0].maxLeases, all[0].bound = max, now
		return all
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	for i, t := range turns {
		if i == max || t.at > horizon {
			break
		}
		all[t.of].maxLeases++
		all[t.of].bound = t.at
	}
	return slices.DeleteFunc(all, func(h share) bool { return h.maxLeases == 0 })
}

// yield leaves a partition to others for a moment, if one was faster: processes that wait
// for the same hosts would all call for each of them, for one to have it. So the fastest
// goes on alone, as long as it has workers, and the others look what is left.
func (s *Store) yield(h *share) {
	if sum, up := h.known(); up && sum.version != h.version {
		h.leave(time.Now().Add(s.opts.Refresh + rand.N(s.opts.Refresh)).UnixMicro())
	}
}
