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

// MaxHostsInMemory is how many host reports, of about 1 KiB each, a crawl report or list of hosts
// keeps in memory. It reads further hosts again when they are shown.
const MaxHostsInMemory = 4096

// A hostRef refers to a host of a long list: it holds the report, or the origins from which to read
// it again.
type hostRef struct {
	firstOrigin decorum.Origin
	details     *hostReportSource // nil: the report is read again from firstOrigin, the only origin
}

// A hostReportSource has one of its two fields.
type hostReportSource struct {
	origins []decorum.Origin // all origins of the host, from which the report is read again
	report  *HostReport      // the report
}

// newHostRef returns a reference to the host of h, with the report if keepReport is set.
func newHostRef(h *HostReport, keepReport bool) hostRef {
	r := hostRef{firstOrigin: h.OriginList[0]}
	if keepReport {
		r.details = &hostReportSource{report: h}
	} else if len(h.OriginList) > 1 {
		r.details = &hostReportSource{origins: h.OriginList}
	}
	return r
}

// load returns the report, from memory or from the store. It returns nil if the store no longer has
// the host.
func (r *hostRef) load(ctx context.Context, q *Inspector) (*HostReport, error) {
	switch {
	case r.details == nil:
		return q.ReadHost(ctx, []decorum.Origin{r.firstOrigin}, false)
	case r.details.report != nil:
		return r.details.report, nil
	}
	return q.ReadHost(ctx, r.details.origins, false)
}

// A rankedHost is a host in the order of a report. It takes about 100 bytes without the report.
type rankedHost struct {
	sortKey hostSortValues
	hostRef
}

// compare orders hosts by sortKey, then by name.
func (h *rankedHost) compare(g *rankedHost) int {
	return cmp.Or(h.sortKey.compare(g.sortKey), strings.Compare(h.firstOrigin.Host(), g.firstOrigin.Host()))
}

// A hostRanking keeps the hosts that come first in a report.
type hostRanking struct {
	limit          int // number of hosts to keep; 0: all
	maxFullReports int // hosts whose reports stay in memory
	hosts          []rankedHost
}

// addHost adds a host. Reports with parked URLs always stay in memory: finding the reasons again
// takes long, and the totals hold as much memory for them. addHost keeps up to twice the limit of
// hosts between two sorts, so that the cost per host is small.
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
		clear(l.hosts[l.limit:]) // for the garbage collector
		l.hosts = l.hosts[:l.limit]
	}
}

// readRankedHosts yields the reports on hosts in their order, with the reasons of their holds. It
// skips hosts that the store no longer has. An error is yielded last.
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

// hostSortValues are the values by which hosts are sorted, in ascending order.
type hostSortValues [3]int64

// attentionSortKey sorts hosts by how much they need the operator's attention: first those with the
// largest delay shortfall, then suspended and held hosts, then those with the most queued URLs, then
// those with the most requests.
func attentionSortKey(h *api.Host) hostSortValues {
	waiting := int64(h.QueuedURLs)
	if h.State == HostSuspended || h.State == stateHeld {
		waiting += 1 << 60
	}
	return hostSortValues{-int64(h.LargestDelayShortfall), -waiting, -h.Requests}
}

// compare compares lexically.
func (k hostSortValues) compare(l hostSortValues) int {
	return cmp.Or(cmp.Compare(k[0], l[0]), cmp.Compare(k[1], l[1]), cmp.Compare(k[2], l[2]))
}
