package daemon

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/forecast"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots"
)

// Where the sizes of a forecast come from.
const (
	sizeAssumed = "assumed"
	sizeEarlier = "earlier crawl"
	sizeMixed   = "assumed, and of an earlier crawl"
)

// An outlook is what a crawl would do at one host, or at all.
type outlook struct {
	Requests  int64            `json:"requests"`
	Robots    int64            `json:"robots"`   // of Requests, for robots.txt
	TDMRep    int64            `json:"tdmrep"`   // likewise, for tdmrep.json: of a crawl that mines
	Sitemaps  int64            `json:"sitemaps"` // likewise
	Pages     int64            `json:"pages"`    // likewise
	Left      int64            `json:"left"`     // pages known that are not visited
	Blocked   int              `json:"blocked_by_robots"`
	Bytes     int64            `json:"bytes"`
	BytesFrom string           `json:"bytes_from"` // assumed, earlier crawl
	Duration  api.Milliseconds `json:"duration_ms"`
}

// A hostOutlook is what a crawl would do at one host.
type hostOutlook struct {
	Type string `json:"type"` // host
	Host string `json:"host"`
	outlook
	Visit      api.Milliseconds     `json:"visit_ms"` // that a request is taken to last
	Declared   api.Milliseconds     `json:"declared_delay_ms"`
	Configured api.Milliseconds     `json:"configured_delay_ms"`
	Why        string               `json:"why,omitempty"` // pages are left
	Origins    []string             `json:"origins"`
	Refusals   []api.RefusalSummary `json:"refusals,omitempty"`
}

// A prospect is what a crawl would do, as far as can be known.
type prospect struct {
	Type    string    `json:"type"` // totals
	At      time.Time `json:"at"`
	Count   int       `json:"hosts"`
	Ends    string    `json:"ends"` // why
	Unknown []string  `json:"unknown"`
	outlook
	Refused  []frontier.Sighted `json:"refused,omitempty"` // where they were found
	hosts    []*hostOutlook
	refusals []api.RefusalSummary
	pageSize Size
}

// unknown is what no dry run can know.
var unknown = []string{
	"pages that only links of other pages, feeds or callbacks lead to",
	"redirects of pages, and pages that fail and are asked for again",
	"how long pages take to come: a request is taken to last as long as others to its host did",
	"what robots.txt files and sitemaps will say later",
}

// A forecaster turns what a scout has found into an outlook.
type forecaster struct {
	*scout
	project  Project // as it is to be crawled
	habits   map[string]habit
	pageSize Size
	survey   *api.Report
}

// forecast says what a crawl of p would do, which began when the scout did.
func (s *scout) forecast(ctx context.Context, p Project, habits map[string]habit, pageSize Size) (*prospect, error) {
	survey, err := s.inquire().report(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	f := &forecaster{scout: s, project: p, habits: habits, pageSize: pageSize, survey: survey}
	total := &prospect{Type: "totals", At: s.start.UTC(), Count: survey.HostCount, Unknown: unknown,
		Refused: survey.RefusalCounts, refusals: survey.ParkedByRule, pageSize: pageSize}
	crawl := f.crawl()
	hosts := make([]forecast.Host, len(survey.Hosts))
	for i, h := range survey.Hosts {
		out := f.outlook(h)
		total.hosts = append(total.hosts, out)
		if hosts[i], err = f.host(ctx, h, out); err != nil {
			return nil, err
		}
		crawl.Received += h.Bytes
	}
	tallies, end := crawl.Play(hosts)
	over := f.over(tallies, end)
	for i, t := range tallies {
		if total.hosts[i].Left > 0 {
			again(&t, &hosts[i], over)
		}
		total.add(total.hosts[i], t, s.start)
	}
	total.Ends, total.Duration = ending(end), api.Milliseconds(over.Sub(s.start))
	slices.SortFunc(total.hosts, func(a, b *hostOutlook) int {
		return cmp.Or(cmp.Compare(b.Duration, a.Duration), strings.Compare(a.Host, b.Host))
	})
	return total, nil
}

// crawl returns the bounds of the crawl as a whole.
func (f *forecaster) crawl() forecast.Crawl {
	l, ip := f.project.Limits, f.project.limits(time.Time{})
	return forecast.Crawl{
		Start: f.start, Workers: l.Workers, Pages: int64(l.Pages), Bytes: int64(l.Bytes), Time: time.Duration(l.Duration),
		RequestsPerSecond: l.RequestsPerSecond, BytesPerSecond: float64(l.BytesPerSecond),
		AddressSlots: ip.IPConcurrency, AddressDelay: ip.IPDelay, Loopback: ip.IPLoopback,
	}
}

// outlook returns what was done at a host, and what is known of its pages.
func (f *forecaster) outlook(h *api.Host) *hostOutlook {
	policy := f.crawler.Policy.For(h.Host, f.start)
	o := &hostOutlook{Type: "host", Host: h.Host, Declared: h.CrawlDelay, Configured: api.Milliseconds(max(policy.Delay, 0)),
		Why: h.HoldReason, Origins: h.Origins, Refusals: h.ParkedByRule,
		outlook: outlook{Requests: h.Requests, Robots: f.robots[h.Host], TDMRep: f.tdmrep[h.Host], Left: int64(h.QueuedURLs), Blocked: h.BlockedByRobots,
			Bytes: h.Bytes, BytesFrom: sizeAssumed}}
	o.Sitemaps = o.Requests - o.Robots - o.TDMRep
	habit, known := f.habits[h.Host]
	switch {
	case known:
		o.Visit, o.BytesFrom = api.Milliseconds(habit.visit), sizeEarlier
	case h.Requests > 0:
		o.Visit = h.RequestTime / api.Milliseconds(h.Requests)
	}
	if !h.LastVisit.IsZero() {
		o.Duration = api.Milliseconds(h.LastVisit.Sub(f.start))
	}
	return o
}

// host returns a host as the forecast plays it.
func (f *forecaster) host(ctx context.Context, h *api.Host, out *hostOutlook) (forecast.Host, error) {
	g := forecast.Host{Name: h.Host, Due: f.start, Strikes: h.ConsecutiveFailures, Visit: time.Duration(out.Visit), Bytes: int64(f.pageSize), Addr: h.Address}
	if !h.LastVisit.IsZero() {
		g.Due = h.LastVisit.Add(time.Duration(h.RequiredDelay))
	}
	if out.BytesFrom == sizeEarlier {
		g.Bytes = f.habits[h.Host].bytes
	}
	var paces []*robots.Rules
	remaining := int64(f.project.Scope.MaxPagesPerHost)
	for _, name := range h.Origins {
		u, err := decorum.ParseURL(name + "/")
		if err != nil {
			continue // cannot be: it was written from an origin
		}
		o, rules, err := f.origin(ctx, u.Origin())
		if err != nil {
			return g, err
		}
		if rules != nil {
			paces = append(paces, rules)
		}
		if maxPages := f.project.Scope.MaxPagesPerHost; maxPages > 0 {
			allowed := min(remaining, o.Pages)
			out.Left, remaining, o.Pages = out.Left+o.Pages-allowed, remaining-allowed, allowed
		}
		g.Origins = append(g.Origins, o)
	}
	g.Policy = func(at time.Time) politeness.Policy { return f.crawler.Policy.For(h.Host, at) }
	g.Pace = func(at time.Time) (rest time.Duration, opens time.Time) {
		opens = at
		for _, rules := range paces {
			rest = max(rest, rules.Pause(at))
			if o := rules.Opens(at); o.After(opens) {
				opens = o
			}
		}
		return rest, opens
	}
	return g, nil
}

// origin returns the pages of an origin, and the rules that pace them; nil if there
// are none.
func (f *forecaster) origin(ctx context.Context, o decorum.Origin) (forecast.Origin, *robots.Rules, error) {
	known := forecast.Origin{Pages: f.pages[o], Robots: forecast.File{Requests: f.rules[o]}}
	var err error
	if known.Robots.Fresh, err = f.gate.Fresh(ctx, o); err != nil {
		return known, nil, err
	}
	file, err := f.gate.Known(ctx, o)
	if err != nil {
		return known, nil, err
	}
	if !file.Fetched.IsZero() {
		known.Robots.TTL = max(known.Robots.Fresh.Sub(file.Fetched), time.Second)
	}
	reserved, err := crawler.ReadTDMRepState(ctx, f.crawler.Frontier, o)
	if err != nil {
		return known, nil, err
	}
	if !reserved.RefetchAt.IsZero() { // it was asked for
		known.TDMRep = forecast.File{Fresh: reserved.RefetchAt, TTL: time.Duration(f.project.Robots.MaxTTL)}
	}
	rules, err := f.gate.Rules(ctx, o)
	return known, rules, err
}

// add adds what is played of a host to what was done there, and that to the whole.
func (p *prospect) add(h *hostOutlook, t forecast.Tally, start time.Time) {
	h.Pages, h.Robots, h.TDMRep, h.Bytes, h.Left = t.Pages, h.Robots+t.Robots, h.TDMRep+t.TDMRep, h.Bytes+t.Bytes, h.Left+t.Left
	h.Requests = h.Pages + h.Robots + h.TDMRep + h.Sitemaps
	if !t.Last.IsZero() {
		h.Duration = max(h.Duration, api.Milliseconds(t.Last.Sub(start)))
	}
	p.Requests, p.Robots, p.TDMRep, p.Sitemaps = p.Requests+h.Requests, p.Robots+h.Robots, p.TDMRep+h.TDMRep, p.Sitemaps+h.Sitemaps
	p.Pages, p.Left, p.Blocked, p.Bytes = p.Pages+h.Pages, p.Left+h.Left, p.Blocked+h.Blocked, p.Bytes+h.Bytes
	switch p.BytesFrom {
	case "", h.BytesFrom:
		p.BytesFrom = h.BytesFrom
	default:
		p.BytesFrom = sizeMixed
	}
}

// over returns when the crawl would end.
func (f *forecaster) over(tallies []forecast.Tally, end forecast.End) time.Time {
	over := f.start
	if end == forecast.ByTime {
		return over.Add(time.Duration(f.project.Limits.Duration))
	}
	for i, t := range tallies {
		for _, last := range []time.Time{t.Last, f.survey.Hosts[i].LastVisit} {
			if last.After(over) {
				over = last
			}
		}
	}
	return over
}

// again adds to t that a host which has pages left, for it is set aside or has had
// its pages, is asked for its files again as long as the crawl goes on, but not
// before it has rested.
func again(t *forecast.Tally, h *forecast.Host, over time.Time) {
	for i := range h.Origins {
		o := &h.Origins[i]
		t.Robots += lookups(t, h, o.Robots, over)
		t.TDMRep += lookups(t, h, o.TDMRep, over)
	}
}

// lookAgain is how long an origin is set aside until it is looked at again: what was
// just learnt is heeded once, however short it holds.
const lookAgain = time.Minute

// lookups returns how many requests are made for a file again until the crawl is over.
func lookups(t *forecast.Tally, h *forecast.Host, f forecast.File, over time.Time) int64 {
	first := f.Fresh
	if rested := h.Due.Add(lookAgain); rested.After(first) {
		first = rested
	}
	if f.TTL == 0 || !over.After(first) {
		return 0
	}
	asked, _ := h.Pace(first)
	every := max(f.TTL, lookAgain+max(asked, h.Policy(first).Delay))
	n := int64(over.Sub(first)/every) + 1
	if last := first.Add(time.Duration(n-1) * every); last.After(t.Last) {
		t.Last = last
	}
	return n * max(f.Requests, 1)
}

// ending says why the crawl would end.
func ending(end forecast.End) string {
	switch end {
	case forecast.ByPages:
		return "limits.pages is reached"
	case forecast.ByBytes:
		return "limits.bytes is reached"
	case forecast.ByTime:
		return "limits.duration is reached"
	case forecast.Never:
		return "the hours of visits and those of robots.txt never meet for what is left"
	}
	return "nothing is left that can be visited"
}
