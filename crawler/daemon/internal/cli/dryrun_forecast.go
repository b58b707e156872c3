package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/forecast"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
)

// The values of forecastTotals.BytesSource: where the assumed sizes of pages come from.
const (
	bytesAssumed          = "assumed"
	bytesFromEarlierCrawl = "earlier crawl"
	bytesFromBoth         = "assumed, and of an earlier crawl"
)

// A forecastTotals forecasts a crawl, of one host or as a whole.
type forecastTotals struct {
	Requests        int64            `json:"requests"` // the sum of the next four fields
	RobotsRequests  int64            `json:"robots"`   // for robots.txt
	TDMRepRequests  int64            `json:"tdmrep"`   // for tdmrep.json; 0 unless the project mines text and data
	SitemapRequests int64            `json:"sitemaps"`
	PageRequests    int64            `json:"pages"`
	PagesLeft       int64            `json:"left"` // known pages that the crawl would not visit
	BlockedURLs     int              `json:"blocked_by_robots"`
	Bytes           int64            `json:"bytes"`
	BytesSource     string           `json:"bytes_from"`  // bytesAssumed, bytesFromEarlierCrawl or bytesFromBoth
	Duration        api.Milliseconds `json:"duration_ms"` // from the start to the end of the last visit
	// WireBytesReceived and Connections are as many for each request as in the earlier crawl: see
	// crawler.HostTraffic. Absent: at one of the hosts, no earlier crawl has counted them for all requests.
	WireBytesReceived int64 `json:"wire_bytes_received,omitempty"`
	Connections       int64 `json:"connections,omitempty"`
}

// A hostForecast forecasts the crawl of one host.
type hostForecast struct {
	RecordType string `json:"type"` // "host"
	Host       string `json:"host"`
	forecastTotals
	VisitDuration   api.Milliseconds     `json:"visit_ms"` // assumed duration of a request
	CrawlDelay      api.Milliseconds     `json:"declared_delay_ms"`
	ConfiguredDelay api.Milliseconds     `json:"configured_delay_ms"`
	PagesLeftReason string               `json:"why,omitempty"` // why pages are left; empty if the host is not held
	Origins         []string             `json:"origins"`
	Refusals        []api.RefusalSummary `json:"refusals,omitempty"`
}

// A dryRunForecast forecasts a crawl as a whole and host by host, as far as a dry run can.
type dryRunForecast struct {
	RecordType string    `json:"type"` // "totals"
	StartedAt  time.Time `json:"at"`
	HostCount  int       `json:"hosts"`
	EndReason  string    `json:"ends"` // why the crawl would end
	// DurationIsMinimum says that pages which only links lead to may prolong the crawl, and cannot shorten it.
	DurationIsMinimum bool     `json:"duration_is_minimum"`
	Unknowns          []string `json:"unknown"`
	forecastTotals
	RefusalCounts   []frontier.RefusalCount `json:"refused,omitempty"` // URLs refused where they were found
	hosts           []*hostForecast         // the longest first
	parkedByRule    []api.RefusalSummary
	assumedPageSize project.Size
	// linksMayEndEarlier says that pages which only links lead to may prolong the crawl or shorten it.
	linksMayEndEarlier bool
}

// forecastUnknowns lists what no dry run can find out. It is part of the output.
var forecastUnknowns = []string{
	"pages that only links of other pages, feeds or callbacks lead to",
	"redirects of pages, and retries of pages that fail",
	"how long pages take to arrive: a request is assumed to take as long as others to its host did",
	"what robots.txt files and sitemaps will say later",
}

// A dryRunForecastBuilder turns the findings of a dry run into a forecast.
type dryRunForecastBuilder struct {
	*dryRun
	project         project.Project // of the crawl that is forecast, not of its dry run
	averagesByHost  map[string]hostAverages
	assumedPageSize project.Size
	dryRunReport    *api.CrawlReport
}

// newForecast forecasts a crawl of p that began when the dry run did. The dry run has ended.
func (s *dryRun) newForecast(ctx context.Context, p project.Project, averages map[string]hostAverages,
	pageSize project.Size) (*dryRunForecast, error) {
	q, err := inspect.New(ctx, s.Engine)
	if err != nil {
		return nil, err
	}
	report, err := api.FullReport(ctx, q.Report, api.ReportQuery{})
	if err != nil {
		return nil, err
	}
	f := &dryRunForecastBuilder{dryRun: s, project: p, averagesByHost: averages,
		assumedPageSize: pageSize, dryRunReport: report}
	total := &dryRunForecast{RecordType: "totals", StartedAt: s.startedAt.UTC(), HostCount: report.HostCount,
		Unknowns:      forecastUnknowns,
		RefusalCounts: report.RefusalCounts, parkedByRule: report.ParkedByRule, assumedPageSize: pageSize}
	// What the dry run did at each host is the start of the simulation.
	crawlLimits := f.crawlLimits()
	hosts := make([]forecast.HostWorkload, len(report.Hosts))
	for i, h := range report.Hosts {
		out := f.hostForecastFromObservations(h)
		total.hosts = append(total.hosts, out)
		if hosts[i], err = f.simulatedHost(ctx, h, out); err != nil {
			return nil, err
		}
		crawlLimits.AlreadyReceivedBytes += h.Bytes
	}
	// Simulate the visits to pages. The crawl refetches robots.txt of hosts with pages left until
	// it ends, so those requests can be counted only when the end is known.
	results, endReason := crawlLimits.Simulate(hosts)
	endTime := f.crawlEndTime(results, endReason)
	for i, t := range results {
		if total.hosts[i].PagesLeft > 0 {
			addForecastFileRefetches(&t, &hosts[i], endTime)
		}
		total.addHost(total.hosts[i], t, s.startedAt)
	}
	total.setTraffic(averages)
	if mayFindMorePages(p) && (endReason == forecast.NothingLeft || endReason == forecast.NeverDue) {
		total.linksMayEndEarlier = mayReachLimitEarlier(p, len(report.Hosts))
		total.DurationIsMinimum = !total.linksMayEndEarlier
	}
	total.EndReason, total.Duration = endReasonTexts[endReason], api.Milliseconds(endTime.Sub(s.startedAt))
	slices.SortFunc(total.hosts, func(a, b *hostForecast) int {
		return cmp.Or(cmp.Compare(b.Duration, a.Duration), strings.Compare(a.Host, b.Host))
	})
	return total, nil
}

// crawlLimits returns the limits that all hosts of the crawl share.
func (f *dryRunForecastBuilder) crawlLimits() forecast.CrawlLimits {
	l, ip := f.project.Limits, f.project.LimiterConfig(time.Time{})
	return forecast.CrawlLimits{
		Start: f.startedAt, Workers: l.Workers, MaxPages: int64(l.Pages), MaxReceivedBytes: int64(l.Bytes),
		MaxTime:           time.Duration(l.Duration),
		RequestsPerSecond: l.RequestsPerSecond, BytesPerSecond: float64(l.BytesPerSecond),
		IPConcurrency: ip.IPConcurrency, IPDelay: ip.IPDelay, LimitLoopback: ip.LimitLoopback,
	}
}

// hostForecastFromObservations returns the forecast of a host before the simulation: the requests
// of the dry run, and the pages that it knows.
func (f *dryRunForecastBuilder) hostForecastFromObservations(h *api.Host) *hostForecast {
	policy := f.Crawler.Policy.ForHost(h.Host, f.startedAt)
	o := &hostForecast{RecordType: "host", Host: h.Host, CrawlDelay: h.CrawlDelay,
		ConfiguredDelay: api.Milliseconds(max(policy.Delay, 0)),
		PagesLeftReason: h.HoldReason, Origins: h.Origins, Refusals: h.ParkedByRule,
		forecastTotals: forecastTotals{Requests: h.Requests, RobotsRequests: f.robotsRequestsByHost[h.Host],
			TDMRepRequests: f.tdmrepRequestsByHost[h.Host], PagesLeft: int64(h.QueuedURLs),
			BlockedURLs: h.BlockedByRobots,
			Bytes:       h.Bytes, BytesSource: bytesAssumed}}
	o.SitemapRequests = o.Requests - o.RobotsRequests - o.TDMRepRequests // a dry run sends no others
	average, hasAverage := f.averagesByHost[h.Host]
	switch {
	case hasAverage:
		o.VisitDuration, o.BytesSource = api.Milliseconds(average.visitDuration), bytesFromEarlierCrawl
	case h.Requests > 0:
		o.VisitDuration = h.RequestTime / api.Milliseconds(h.Requests)
	}
	if !h.LastVisit.IsZero() {
		o.Duration = api.Milliseconds(h.LastVisit.Sub(f.startedAt))
	}
	return o
}

// simulatedHost returns the workload of a host for the simulation. It takes the pages beyond
// scope.max_pages_per_host off the origins, and adds them to out.PagesLeft.
func (f *dryRunForecastBuilder) simulatedHost(ctx context.Context, h *api.Host,
	out *hostForecast) (forecast.HostWorkload, error) {
	g := forecast.HostWorkload{Name: h.Host, Due: f.startedAt,
		Health: politeness.HostHealth{ConsecutiveFailures: h.ConsecutiveFailures,
			LearnedPace: politeness.LearnedPace{Delay: time.Duration(h.LearnedDelay)}},
		VisitDuration: time.Duration(out.VisitDuration), BytesPerPage: int64(f.assumedPageSize), Addr: h.Address}
	if !h.LastVisit.IsZero() {
		g.Due = h.LastVisit.Add(time.Duration(h.RequiredDelay))
	}
	if out.BytesSource == bytesFromEarlierCrawl {
		g.BytesPerPage = f.averagesByHost[h.Host].responseBytes
	}
	var originRules []*robots.Rules
	remaining := int64(f.project.Scope.MaxPagesPerHost)
	for _, name := range h.Origins {
		u, err := decorum.ParseURL(name + "/")
		if err != nil {
			continue // impossible: the name was formatted from an origin
		}
		o, rules, err := f.originWorkloadAndRules(ctx, u.Origin())
		if err != nil {
			return g, err
		}
		if rules != nil {
			originRules = append(originRules, rules)
		}
		// The host's origins share its limit of pages, in the order of the report.
		if maxPages := f.project.Scope.MaxPagesPerHost; maxPages > 0 {
			allowed := min(remaining, o.Pages)
			out.PagesLeft, remaining, o.Pages = out.PagesLeft+o.Pages-allowed, remaining-allowed, allowed
		}
		g.Origins = append(g.Origins, o)
	}
	// Pace: the strictest of the host's robots.txt files holds for all its origins.
	g.PolicyAt = func(at time.Time) politeness.Policy { return f.Crawler.Policy.ForHost(h.Host, at) }
	g.RobotsDelayAndNextAllowedTime = func(at time.Time) (delay time.Duration, nextOpen time.Time) {
		nextOpen = at
		for _, rules := range originRules {
			delay = max(delay, rules.DelayAt(at))
			nextOpen = timecmp.Later(nextOpen, rules.NextAllowedTime(at))
		}
		return delay, nextOpen
	}
	return g, nil
}

// originWorkloadAndRules returns the pages of the origin o and its robots.txt rules, which pace
// them; the rules are nil if no robots.txt of o is cached.
func (f *dryRunForecastBuilder) originWorkloadAndRules(ctx context.Context,
	o decorum.Origin) (forecast.OriginWorkload, *robots.Rules, error) {
	expiresAt, expiresErr := f.Gate.ExpiresAt(ctx, o)
	file, fileErr := f.Gate.LastFetchSummary(ctx, o)
	tdmrep, tdmrepErr := crawler.ReadCachedTDMRep(ctx, f.Crawler.Frontier.Store(), o)
	rules, rulesErr := f.Gate.Rules(ctx, o)
	origin := forecast.OriginWorkload{Pages: f.skippedPagesByOrigin[o], Robots: forecast.RefetchedControlFile{
		ExpiresAt: expiresAt, RequestsPerFetch: f.lastRobotsFetchRequestsByOrigin[o]}}
	if !file.FetchedAt.IsZero() {
		origin.Robots.TTL = max(origin.Robots.ExpiresAt.Sub(file.FetchedAt), time.Second)
	}
	if !tdmrep.RefetchAt.IsZero() { // the dry run fetched it
		origin.TDMRep = forecast.RefetchedControlFile{ExpiresAt: tdmrep.RefetchAt,
			TTL: time.Duration(f.project.Robots.MaxTTL)}
	}
	return origin, rules, cmp.Or(expiresErr, fileErr, tdmrepErr, rulesErr)
}

// addHost adds the simulated visits t to the forecast h of their host, and h to the totals p.
func (p *dryRunForecast) addHost(h *hostForecast, t forecast.Result, start time.Time) {
	h.PageRequests, h.RobotsRequests, h.TDMRepRequests, h.Bytes, h.PagesLeft = t.Pages,
		h.RobotsRequests+t.RobotsRefetchRequests, h.TDMRepRequests+t.TDMRepRefetchRequests,
		h.Bytes+t.Bytes, h.PagesLeft+t.PagesLeft
	h.Requests = h.PageRequests + h.RobotsRequests + h.TDMRepRequests + h.SitemapRequests
	if !t.LastVisitEnd.IsZero() {
		h.Duration = max(h.Duration, api.Milliseconds(t.LastVisitEnd.Sub(start)))
	}
	p.Requests, p.RobotsRequests, p.TDMRepRequests, p.SitemapRequests = p.Requests+h.Requests,
		p.RobotsRequests+h.RobotsRequests, p.TDMRepRequests+h.TDMRepRequests, p.SitemapRequests+h.SitemapRequests
	p.PageRequests, p.PagesLeft, p.BlockedURLs, p.Bytes = p.PageRequests+h.PageRequests, p.PagesLeft+h.PagesLeft,
		p.BlockedURLs+h.BlockedURLs, p.Bytes+h.Bytes
	switch p.BytesSource {
	case "", h.BytesSource:
		p.BytesSource = h.BytesSource
	default:
		p.BytesSource = bytesFromBoth
	}
}

// setTraffic sets the traffic of the hosts in proportion to that of the earlier crawl, and its sum if it is
// known of all hosts.
func (p *dryRunForecast) setTraffic(averages map[string]hostAverages) {
	isKnown := true
	for _, h := range p.hosts {
		if h.Requests == 0 {
			continue
		}
		// A body was received, or was saved by compression: if fewer bytes were, an earlier version made some
		// of the visits, or they were over FTP.
		earlier := averages[h.Host].traffic
		if earlier.Connections == 0 || earlier.WireBytesReceived < earlier.Bytes-earlier.SavedByCompression {
			isKnown = false
			continue
		}
		share := float64(h.Requests) / float64(earlier.Requests)
		h.WireBytesReceived = int64(share * float64(earlier.WireBytesReceived))
		h.Connections = max(1, int64(math.Round(share*float64(earlier.Connections))))
		p.WireBytesReceived, p.Connections = p.WireBytesReceived+h.WireBytesReceived, p.Connections+h.Connections
	}
	if !isKnown {
		p.WireBytesReceived, p.Connections = 0, 0
	}
}

// crawlEndTime returns when the crawl would end.
func (f *dryRunForecastBuilder) crawlEndTime(results []forecast.Result, endReason forecast.EndReason) time.Time {
	endTime := f.startedAt
	if endReason == forecast.TimeLimit {
		return endTime.Add(time.Duration(f.project.Limits.Duration))
	}
	for i, t := range results {
		endTime = timecmp.Later(endTime, timecmp.Later(t.LastVisitEnd, f.dryRunReport.Hosts[i].LastVisit))
	}
	return endTime
}

// addForecastFileRefetches adds to t the requests that refetch robots.txt and tdmrep.json of a host
// with pages left, because it is suspended or has reached a limit. The crawl refetches them until
// endTime, each time after the host's delay.
func addForecastFileRefetches(t *forecast.Result, h *forecast.HostWorkload, endTime time.Time) {
	for _, o := range h.Origins {
		t.RobotsRefetchRequests += forecastFileRefetches(t, h, o.Robots, endTime)
		t.TDMRepRefetchRequests += forecastFileRefetches(t, h, o.TDMRep, endTime)
	}
}

// minRefetchInterval is the shortest time between two fetches of the robots.txt or tdmrep.json of a
// suspended origin. A file with a shorter lifetime still decides once.
const minRefetchInterval = time.Minute

// forecastFileRefetches returns how many requests refetch the file f of the host h until endTime,
// and sets t.LastVisitEnd to the last of them if that is later.
func forecastFileRefetches(t *forecast.Result, h *forecast.HostWorkload,
	f forecast.RefetchedControlFile, endTime time.Time) int64 {
	first := timecmp.Later(f.ExpiresAt, h.Due.Add(minRefetchInterval))
	if f.TTL == 0 || !endTime.After(first) {
		return 0
	}
	crawlDelay, _ := h.RobotsDelayAndNextAllowedTime(first)
	interval := max(f.TTL, minRefetchInterval+max(crawlDelay, h.PolicyAt(first).Delay))
	n := int64(endTime.Sub(first)/interval) + 1
	t.LastVisitEnd = timecmp.Later(t.LastVisitEnd, first.Add(time.Duration(n-1)*interval))
	return n * max(f.RequestsPerFetch, 1)
}

// endReasonTexts has the text of dryRunForecast.EndReason for each way a crawl ends.
var endReasonTexts = map[forecast.EndReason]string{
	forecast.PageLimit:   "limits.pages is reached",
	forecast.ByteLimit:   "limits.bytes is reached",
	forecast.TimeLimit:   "limits.duration is reached",
	forecast.NeverDue:    "the visit hours of the project and of robots.txt never overlap for the pages left",
	forecast.NothingLeft: "no page is left that can be visited",
}

// mayFindMorePages reports whether pages of a crawl of p may lead to pages that no sitemap lists.
func mayFindMorePages(p project.Project) bool {
	d := p.Discover
	return p.Handler != "" || d.Resources ||
		p.Scope.MaxDepth > 0 && (d.Links || d.Feeds || d.Canonical || d.Images)
}

// mayReachLimitEarlier reports whether pages that no sitemap lists may exhaust limits.pages or limits.bytes of
// a crawl of p before it has visited the known pages. If all pages are on one host, whose pace they
// share, that takes no less time than the visits to the known pages.
func mayReachLimitEarlier(p project.Project, hostCount int) bool {
	mayVisitOtherHosts := hostCount > 1 || p.Scope.ScopeMode != "host" && p.Scope.ScopeMode != "origin"
	return mayVisitOtherHosts && (p.Limits.Pages > 0 || p.Limits.Bytes > 0)
}

// maxForecastRows is the most hosts, and the most rules, that the table of a forecast lists.
const maxForecastRows = 20

// writeJSONL writes one line with the totals, and then one line for each host.
func (p *dryRunForecast) writeJSONL(out *sinks.JSONLRecorder) error {
	e := jsonline.NewEncoder(out)
	err := e.Encode(p)
	for _, h := range p.hosts {
		if err == nil {
			err = e.Encode(h)
		}
	}
	if err = errors.Join(err, out.Sync()); err != nil {
		return fmt.Errorf("cannot write the forecast: %w", err)
	}
	return nil
}

// writeTable writes the forecast as text: a table of the hosts, why the crawl would end, why pages
// are left, and what the forecast does not know.
func (p *dryRunForecast) writeTable(w io.Writer) error {
	var s reporttext.Builder
	s.WriteLine("Forecast of the crawl, from robots.txt files and sitemaps alone, as of %s:",
		inspect.FormatTime(p.StartedAt))
	s.WriteLine("")
	s.WriteTable(func(row func(...any)) {
		cells := func(all ...any) {
			if p.TDMRepRequests == 0 {
				all = slices.Delete(all, 3, 4) // most crawls fetch no tdmrep.json: leave out the column
			}
			row(all...)
		}
		cells("HOST", "REQUESTS", "ROBOTS", "TDMREP", "SITEMAPS", "PAGES", "LEFT", "BLOCKED", "DECLARED", "CONFIGURED",
			"A VISIT", "BYTES", "DURATION")
		for _, h := range p.hosts[:min(len(p.hosts), maxForecastRows)] {
			h.writeForecastRow(cells, h.Host, inspect.DelayText(h.CrawlDelay), inspect.DelayText(h.ConfiguredDelay),
				inspect.DelayText(h.VisitDuration))
		}
		p.writeForecastRow(cells, "all", "", "", "")
	})
	if more := len(p.hosts) - maxForecastRows; more > 0 {
		s.WriteLine("… and %d more hosts: --output lists all", more)
	}
	s.WriteLine("")
	switch duration := roundedDurationText(time.Duration(p.Duration)); {
	case p.DurationIsMinimum:
		s.WriteLine("The crawl would end after at least %s, and later if links lead to more pages: %s.", duration,
			p.EndReason)
	case p.linksMayEndEarlier:
		s.WriteLine("The crawl would end after %s, and earlier or later if links lead to more pages: %s.", duration,
			p.EndReason)
	default:
		s.WriteLine("The crawl would end after %s: %s.", duration, p.EndReason)
	}
	for _, h := range p.hosts {
		if h.PagesLeft > 0 && h.PagesLeftReason != "" {
			s.WriteLine("%s: %d %s left, because %s", h.Host, h.PagesLeft, reporttext.URLNoun(int(h.PagesLeft)),
				plaintext.ReplaceControlChars(h.PagesLeftReason))
		}
	}
	s.WriteLine("%s", bytesSourceText(p))
	s.WriteLineIf(p.Connections > 0, "Traffic: as in the earlier crawl, %s received on the wire, connections: %d.",
		plaintext.FormatBytes(p.WireBytesReceived), p.Connections)
	s.WriteParkedReasons("Not visited:", p.parkedByRule, maxForecastRows)
	s.WriteRefusalCounts("Refused when found, by reason:", p.RefusalCounts)
	s.WriteLine("")
	s.WriteLine("Not included, because a dry run cannot know it:")
	for _, what := range p.Unknowns {
		s.WriteLine("  - %s", what)
	}
	return s.PrintTo(w)
}

// writeForecastRow writes the row of one host, or of the totals.
func (o *forecastTotals) writeForecastRow(row func(...any), host, crawlDelay, configuredDelay, visitTime string) {
	row(host, o.Requests, o.RobotsRequests, o.TDMRepRequests, o.SitemapRequests, o.PageRequests, o.PagesLeft,
		o.BlockedURLs, crawlDelay, configuredDelay, visitTime,
		plaintext.FormatBytes(o.Bytes), roundedDurationText(time.Duration(o.Duration)))
}

// bytesSourceText returns a line that says where the assumed sizes of pages come from.
func bytesSourceText(p *dryRunForecast) string {
	assumed := fmt.Sprintf("%v a page, which --page-size changes.", p.assumedPageSize)
	switch p.BytesSource {
	case bytesFromEarlierCrawl:
		return "Bytes: assumes for each page the mean of its host's answers in the earlier crawl."
	case bytesFromBoth:
		return "Bytes: assumes for each page the mean of its host's answers in the earlier crawl; for new hosts, " +
			assumed
	}
	return "Bytes: assumes " + assumed
}

// roundedDurationText formats a duration for people: in days from 48 hours on, else rounded to
// seconds, or below a minute to milliseconds.
func roundedDurationText(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= time.Minute:
		return project.Duration(d.Round(time.Second)).String()
	}
	return project.Duration(d.Round(time.Millisecond)).String()
}
