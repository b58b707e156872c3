package daemon

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// maxHostsInMemory is how many hosts a report keeps in memory, of about 1 KiB each. It
// reads those beyond again when it writes them.
const maxHostsInMemory = 4096

// A survey is a report whose hosts are not in memory. The totals lack Hosts.
type survey struct {
	*inquiry
	totals api.Report
	hosts  leadingHosts
}

// A rankedHost is a host in the order of a report: what it takes to sort it and to
// read it again, in about 100 bytes.
type rankedHost struct {
	rank   hostKey
	origin decorum.Origin
	more   *hostDetails // nil if the host has one origin
}

// hostDetails is what a few of the hosts beyond maxHostsInMemory need in addition.
type hostDetails struct {
	origins []decorum.Origin // all of them
	host    *surveyed        // nil if it is read again
}

func (h *rankedHost) compare(g *rankedHost) int {
	return cmp.Or(h.rank.compare(g.rank), strings.Compare(h.origin.Host(), g.origin.Host()))
}

// leadingHosts keeps the hosts that come first in a report: all of them if limit is 0.
type leadingHosts struct {
	limit  int
	held   int // hosts that are kept whole, at most
	ranked []rankedHost
}

// add adds a host. Hosts with parked URLs are kept whole, too: to judge these again
// takes long, and the totals hold as much of them. Twice the limit are kept, so that
// each host costs little.
func (l *leadingHosts) add(h *surveyed) {
	r := rankedHost{rank: concern(&h.Host), origin: h.first}
	if len(l.ranked) < l.held || len(h.ParkedByRule) > 0 {
		r.more = &hostDetails{host: h}
	} else if len(h.others) > 0 {
		r.more = &hostDetails{origins: append([]decorum.Origin{h.first}, h.others...)}
	}
	l.ranked = append(l.ranked, r)
	if l.limit > 0 && len(l.ranked) >= 2*max(l.limit, 64) {
		l.cut()
	}
}

// cut sorts the hosts and drops those beyond the limit.
func (l *leadingHosts) cut() {
	slices.SortFunc(l.ranked, func(a, b rankedHost) int { return a.compare(&b) })
	if l.limit > 0 && len(l.ranked) > l.limit {
		clear(l.ranked[l.limit:]) // lets them be collected
		l.ranked = l.ranked[:l.limit]
	}
}

// each calls yield with the hosts in the order of the report, until it fails.
func (s *survey) each(ctx context.Context, yield func(*api.Host) error) error {
	for i := range s.hosts.ranked {
		h, err := s.host(ctx, &s.hosts.ranked[i])
		if err != nil {
			return err
		}
		if h == nil {
			continue
		}
		if err := s.explainHold(ctx, h); err != nil {
			return err
		}
		if err := yield(&h.Host); err != nil {
			return err
		}
	}
	return nil
}

// host returns a host of the report, from memory or from the store.
func (s *survey) host(ctx context.Context, r *rankedHost) (*surveyed, error) {
	switch {
	case r.more == nil:
		return s.readHost(ctx, []decorum.Origin{r.origin})
	case r.more.host != nil:
		return r.more.host, nil
	}
	return s.readHost(ctx, r.more.origins)
}

// report returns the report with its hosts.
func (s *survey) report(ctx context.Context) (*api.Report, error) {
	r := s.totals
	err := s.each(ctx, func(h *api.Host) error {
		r.Hosts = append(r.Hosts, h)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r, nil
}
