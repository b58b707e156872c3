package inspect

import (
	"context"
	"iter"
	"slices"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
)

// Report calls use with the report on the crawl, or on one host if the query names it. The hosts
// are in the order of attentionSortKey. query.Limit is the maximum number of hosts; 0 means all.
func (q *Inspector) Report(ctx context.Context, query api.ReportQuery, use func(*api.StreamedReport) error) error {
	host, err := ParseHostParam(query.Host)
	if err != nil {
		return err
	}
	if query.Limit < 0 {
		return api.InvalidInput("limit: %d is not a number of hosts", query.Limit)
	}
	s, err := q.streamedReport(ctx, host, query.Limit, MaxHostsInMemory)
	switch {
	case err != nil:
		return err
	case host != "" && s.Totals.HostCount == 0:
		return NewUnknownHostError(q.Name, host)
	}
	return use(s)
}

// streamedReport returns the report with its totals. It holds at most maxInMemory host reports,
// besides those with parked URLs. It keeps references to read the other hosts again, or nothing for
// those beyond the limit.
func (q *Inspector) streamedReport(
	ctx context.Context, onlyHost string, limit, maxInMemory int,
) (*api.StreamedReport, error) {
	r := api.CrawlReport{AsOf: q.AsOf.UTC(), HostsByState: map[string]int{},
		CrawlDelayLimit: api.Milliseconds(q.Project.Politeness.MaxCrawlDelay)}
	ranking, refusals := hostRanking{limit: limit, maxFullReports: maxInMemory}, RefusalTally{}
	addHost := func(h *HostReport) {
		refusals.merge(h.ParkedByRule)
		r.HostCount++
		r.OriginCount += len(h.Origins)
		addHostTotals(&r.HostTotals, &h.HostTotals)
		r.LargestDelayShortfall = max(r.LargestDelayShortfall, h.LargestDelayShortfall)
		r.HostsByState[h.State]++
		ranking.addHost(h)
	}
	var err error
	if onlyHost == "" {
		err = q.ForEachHostReport(ctx, true, addHost)
	} else {
		var h *HostReport
		if h, err = q.lookUpHost(ctx, onlyHost, true); h != nil {
			addHost(h)
		}
	}
	if err == nil {
		err = q.addRefusalAndSessionIDCounts(ctx, onlyHost, &r)
	}
	if err != nil {
		return nil, err
	}
	// The limit applies to every list of the report.
	ranking.sortAndTrim()
	r.ParkedByRule = refusals.Sorted()
	if limit > 0 {
		r.ParkedByRule = r.ParkedByRule[:min(limit, len(r.ParkedByRule))]
		r.ClosedPatterns = r.ClosedPatterns[:min(limit, len(r.ClosedPatterns))]
		r.RefusalCounts = r.RefusalCounts[:min(limit, len(r.RefusalCounts))]
		r.StrippedSessionIDsByHost = r.StrippedSessionIDsByHost[:min(limit, len(r.StrippedSessionIDsByHost))]
		r.NotFollowed = r.NotFollowed[:min(limit, len(r.NotFollowed))]
	}
	return &api.StreamedReport{Totals: r, Hosts: q.readRankedHosts(ctx, ranking.hosts)}, nil
}

// A reportTotalsOrHost is a part of a streamed report: the totals come first, then the hosts.
type reportTotalsOrHost struct {
	totals *api.CrawlReport
	host   *api.Host
}

// reportParts yields the report in parts. An error is yielded last.
func (q *Inspector) reportParts(ctx context.Context, query api.ReportQuery) iter.Seq2[*reportTotalsOrHost, error] {
	return func(yield func(*reportTotalsOrHost, error) bool) {
		isRead := true
		err := q.Report(ctx, query, func(s *api.StreamedReport) error {
			isRead = yield(&reportTotalsOrHost{totals: &s.Totals}, nil)
			for h, err := range s.Hosts {
				if err != nil || !isRead {
					return err
				}
				isRead = yield(&reportTotalsOrHost{host: h}, nil)
			}
			return nil
		})
		if err != nil && isRead {
			yield(nil, err)
		}
	}
}

// addRefusalAndSessionIDCounts sets the counts of URLs that the frontier refused, or whose session
// ID it removed, when they were found, and the patterns that it closed.
func (q *Inspector) addRefusalAndSessionIDCounts(ctx context.Context, onlyHost string, s *api.CrawlReport) (err error) {
	if s.RefusalCounts, err = frontier.LoadRefusalCounts(ctx, q.FrontierStore); err != nil {
		return err
	}
	if s.StrippedSessionIDsByHost, err = frontier.LoadStrippedSessionIDCounts(ctx, q.FrontierStore); err != nil {
		return err
	}
	if s.NotFollowed, err = frontier.LoadNotFollowedCounts(ctx, q.FrontierStore); err != nil {
		return err
	}
	if err = q.loadClosedPatterns(ctx); err != nil {
		return err
	}
	s.ClosedPatterns = q.closedPatterns.Load().List(onlyHost)
	isOtherHost := func(r frontier.RefusalCount) bool { return onlyHost != "" && r.Host != onlyHost }
	s.RefusalCounts, s.StrippedSessionIDsByHost = slices.DeleteFunc(s.RefusalCounts, isOtherHost),
		slices.DeleteFunc(s.StrippedSessionIDsByHost, isOtherHost)
	s.NotFollowed = slices.DeleteFunc(s.NotFollowed, isOtherHost)
	return nil
}

// addHostTotals adds u to t.
func addHostTotals(t, u *api.HostTotals) {
	(*crawler.HostTraffic)(&t.HostTraffic).Add(crawler.HostTraffic(u.HostTraffic))
	t.Pages += u.Pages
	t.Failures += u.Failures
	t.RequestTime += u.RequestTime
	t.KnownURLs += u.KnownURLs
	t.DoneURLs += u.DoneURLs
	t.QueuedURLs += u.QueuedURLs
	t.AwaitingRevisit += u.AwaitingRevisit
	t.ParkedURLs += u.ParkedURLs
	t.BlockedByRobots += u.BlockedByRobots
	t.BlockedByTDMRep += u.BlockedByTDMRep
	t.OutOfScope += u.OutOfScope
	t.PagesWithheld += u.PagesWithheld
	recalculateCoverage(t)
}

// recalculateCoverage sets the coverage: the share of URLs in scope that are done, or 1 without
// URLs.
func recalculateCoverage(t *api.HostTotals) {
	t.Coverage = 1
	if all := t.KnownURLs - t.OutOfScope; all > 0 {
		t.Coverage = float64(t.DoneURLs) / float64(all)
	}
}
