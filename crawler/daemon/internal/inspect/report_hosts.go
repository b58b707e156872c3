package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// MaxHostsInMemory is how many hosts a report keeps in memory, of about 1 KiB each. It
// reads those beyond again when it writes them.
const MaxHostsInMemory = 4096

// A StreamedReport is a report whose hosts are not in memory. The totals lack Hosts.
type StreamedReport struct {
	*Inspector
	Totals  api.CrawlReport
	Ranking HostRanking
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

// HostRanking keeps the hosts that come first in a report: all of them if limit is 0.
type HostRanking struct {
	limit          int
	maxFullReports int // hosts that are kept whole, at most
	Hosts          []rankedHost
}

// addHost adds a host. Hosts with parked URLs are kept whole, too: to judge these again
// takes long, and the totals hold as much of them. Twice the limit are kept, so that
// each host costs little.
func (l *HostRanking) addHost(h *HostReport) {
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
func (l *HostRanking) sortAndTrim() {
	slices.SortFunc(l.Hosts, func(a, b rankedHost) int { return a.compare(&b) })
	if l.limit > 0 && len(l.Hosts) > l.limit {
		clear(l.Hosts[l.limit:]) // lets them be collected
		l.Hosts = l.Hosts[:l.limit]
	}
}

// ForEachReportedHost calls yield with the hosts in the order of the report, until it fails.
func (s *StreamedReport) ForEachReportedHost(ctx context.Context, yield func(*api.Host) error) error {
	for i := range s.Ranking.Hosts {
		h, err := s.loadHost(ctx, &s.Ranking.Hosts[i])
		if err != nil {
			return err
		}
		if h == nil {
			continue
		}
		if err := s.SetHostHoldReason(ctx, h); err != nil {
			return err
		}
		if err := yield(&h.Host); err != nil {
			return err
		}
	}
	return nil
}

// loadHost returns a host of the report, from memory or from the store.
func (s *StreamedReport) loadHost(ctx context.Context, r *rankedHost) (*HostReport, error) {
	switch {
	case r.details == nil:
		return s.ReadHost(ctx, []decorum.Origin{r.firstOrigin})
	case r.details.report != nil:
		return r.details.report, nil
	}
	return s.ReadHost(ctx, r.details.allOrigins)
}

// FullReport returns the report with its hosts.
func (s *StreamedReport) FullReport(ctx context.Context) (*api.CrawlReport, error) {
	r := s.Totals
	err := s.ForEachReportedHost(ctx, func(h *api.Host) error {
		r.Hosts = append(r.Hosts, h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r, nil
}
