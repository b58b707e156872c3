package inspect

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// MaxHostsInMemory is how many hosts a report keeps in memory, of about 1 KiB each. It
// reads those beyond again when it writes them.
const MaxHostsInMemory = 4096

// A hostRef is a host of a long list: its report, or what it takes to read that again.
type hostRef struct {
	firstOrigin decorum.Origin
	details     *hostReportSource // nil if the host has one origin, and is read again
}

// hostReportSource is what hosts need that are kept in memory, or have several origins.
type hostReportSource struct {
	origins []decorum.Origin // all of them
	report  *HostReport      // nil if it is read again
}

func newHostRef(h *HostReport, keepReport bool) hostRef {
	r := hostRef{firstOrigin: h.OriginList[0]}
	if keepReport {
		r.details = &hostReportSource{report: h}
	} else if len(h.OriginList) > 1 {
		r.details = &hostReportSource{origins: h.OriginList}
	}
	return r
}

// load returns the host, from memory or from the store: nil if that knows it no more.
func (r *hostRef) load(ctx context.Context, q *Inspector) (*HostReport, error) {
	switch {
	case r.details == nil:
		return q.ReadHost(ctx, []decorum.Origin{r.firstOrigin}, false)
	case r.details.report != nil:
		return r.details.report, nil
	}
	return q.ReadHost(ctx, r.details.origins, false)
}

// A rankedHost is a host in the order of a report, in about 100 bytes unless it is kept whole.
type rankedHost struct {
	sortKey hostSortValues
	hostRef
}

func (h *rankedHost) compare(g *rankedHost) int {
	return cmp.Or(h.sortKey.compare(g.sortKey), strings.Compare(h.firstOrigin.Host(), g.firstOrigin.Host()))
}

// hostRanking keeps the hosts that come first in a report: all of them if limit is 0.
type hostRanking struct {
	limit          int
	maxFullReports int // hosts that are kept whole, at most
	hosts          []rankedHost
}

// addHost adds a host. Hosts with parked URLs are kept whole, too: to judge these again
// takes long, and the totals hold as much of them. Twice the limit are kept, so that
// each host costs little.
func (l *hostRanking) addHost(h *HostReport) {
	keepReport := len(l.hosts) < l.maxFullReports || len(h.ParkedByRule) > 0
	l.hosts = append(l.hosts, rankedHost{attentionSortKey(&h.Host), newHostRef(h, keepReport)})
	if l.limit > 0 && len(l.hosts) >= 2*max(l.limit, 64) {
		l.sortAndTrim()
	}
}

// sortAndTrim sorts the hosts and drops those beyond the limit.
func (l *hostRanking) sortAndTrim() {
	slices.SortFunc(l.hosts, func(a, b rankedHost) int { return a.compare(&b) })
	if l.limit > 0 && len(l.hosts) > l.limit {
		clear(l.hosts[l.limit:]) // lets them be collected
		l.hosts = l.hosts[:l.limit]
	}
}

// readRankedHosts yields the hosts of a ranking in its order. An error is yielded last.
func (q *Inspector) readRankedHosts(ctx context.Context, hosts []rankedHost) iter.Seq2[*api.Host, error] {
	return func(yield func(*api.Host, error) bool) {
		for _, ranked := range hosts {
			h, err := ranked.load(ctx, q)
			if err == nil && h != nil {
				err = q.SetHostHoldReason(ctx, h)
			}
			switch {
			case err != nil:
				yield(nil, err)
				return
			case h != nil && !yield(&h.Host, nil):
				return
			}
		}
	}
}

// A hostSortValues is what hosts are sorted by, the smallest first.
type hostSortValues [3]int64

// attentionSortKey is the smallest for what asks most to be looked at: rests cut short,
// hosts that stand still, and those with most to do.
func attentionSortKey(h *api.Host) hostSortValues {
	waiting := int64(h.QueuedURLs)
	if h.State == HostSuspended || h.State == stateHeld {
		waiting += 1 << 60
	}
	return hostSortValues{-int64(h.LargestDelayShortfall), -waiting, -h.Requests}
}

func (k hostSortValues) compare(l hostSortValues) int {
	return cmp.Or(cmp.Compare(k[0], l[0]), cmp.Compare(k[1], l[1]), cmp.Compare(k[2], l[2]))
}
