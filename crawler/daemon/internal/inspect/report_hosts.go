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

// A rankedReport is a report whose hosts are not all in memory. totals lacks Hosts.
type rankedReport struct {
	*Inspector
	totals  api.CrawlReport
	ranking hostRanking
}

// A rankedHost is a host in the order of a report: what it takes to sort it and to
// read it again, in about 100 bytes.
type rankedHost struct {
	sortKey     hostSortValues
	firstOrigin decorum.Origin
	details     *rankedHostExtra // nil if the host has one origin
}

// rankedHostExtra is what a few of the hosts beyond MaxHostsInMemory need in addition.
type rankedHostExtra struct {
	allOrigins []decorum.Origin // all of them
	report     *HostReport      // nil if it is read again
}

func (h *rankedHost) compare(g *rankedHost) int {
	return cmp.Or(h.sortKey.compare(g.sortKey), strings.Compare(h.firstOrigin.Host(), g.firstOrigin.Host()))
}

// hostRanking keeps the hosts that come first in a report: all of them if limit is 0.
type hostRanking struct {
	limit          int
	maxFullReports int // hosts that are kept whole, at most
	Hosts          []rankedHost
}

// addHost adds a host. Hosts with parked URLs are kept whole, too: to judge these again
// takes long, and the totals hold as much of them. Twice the limit are kept, so that
// each host costs little.
func (l *hostRanking) addHost(h *HostReport) {
	r := rankedHost{sortKey: attentionSortKey(&h.Host), firstOrigin: h.FirstOrigin}
	if len(l.Hosts) < l.maxFullReports || len(h.ParkedByRule) > 0 {
		r.details = &rankedHostExtra{report: h}
	} else if len(h.otherOrigins) > 0 {
		r.details = &rankedHostExtra{allOrigins: append([]decorum.Origin{h.FirstOrigin}, h.otherOrigins...)}
	}
	l.Hosts = append(l.Hosts, r)
	if l.limit > 0 && len(l.Hosts) >= 2*max(l.limit, 64) {
		l.sortAndTrim()
	}
}

// sortAndTrim sorts the hosts and drops those beyond the limit.
func (l *hostRanking) sortAndTrim() {
	slices.SortFunc(l.Hosts, func(a, b rankedHost) int { return a.compare(&b) })
	if l.limit > 0 && len(l.Hosts) > l.limit {
		clear(l.Hosts[l.limit:]) // lets them be collected
		l.Hosts = l.Hosts[:l.limit]
	}
}

// stream returns the report as its readers get it.
func (s *rankedReport) stream(ctx context.Context) *api.StreamedReport {
	return &api.StreamedReport{Totals: s.totals, Hosts: s.hosts(ctx)}
}

// hosts yields the hosts in the order of the report. An error is yielded last.
func (s *rankedReport) hosts(ctx context.Context) iter.Seq2[*api.Host, error] {
	return func(yield func(*api.Host, error) bool) {
		for i := range s.ranking.Hosts {
			h, err := s.loadHost(ctx, &s.ranking.Hosts[i])
			if err == nil && h != nil {
				err = s.SetHostHoldReason(ctx, h)
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

// loadHost returns a host of the report, from memory or from the store.
func (s *rankedReport) loadHost(ctx context.Context, r *rankedHost) (*HostReport, error) {
	switch {
	case r.details == nil:
		return s.ReadHost(ctx, []decorum.Origin{r.firstOrigin})
	case r.details.report != nil:
		return r.details.report, nil
	}
	return s.ReadHost(ctx, r.details.allOrigins)
}
