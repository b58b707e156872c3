package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// addTally adds u to t.
func addTally(t, u *api.HostTotals) {
	t.Requests += u.Requests
	t.Pages += u.Pages
	t.Failures += u.Failures
	t.Bytes += u.Bytes
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
	cover(t)
}

// cover works out the coverage.
func cover(t *api.HostTotals) {
	t.Coverage = 1
	if all := t.KnownURLs - t.OutOfScope; all > 0 {
		t.Coverage = float64(t.DoneURLs) / float64(all)
	}
}

// A surveyed host is what is said of it, and what that rests on.
type surveyed struct {
	api.Host
	refusals refusals
	due      time.Time      // of the host's clock
	held     decorum.Origin // whose hold State tells of
	begun    int64          // pages that count for max_pages_per_host
	next     time.Time
	first    decorum.Origin // of Origins
	others   []decorum.Origin
}

// report asks the stores for the report, of one host if it is named. The hosts come in
// the order of what matters, at most limit of them unless it is 0.
func (q *inquiry) report(ctx context.Context, only string, limit int) (*api.Report, error) {
	s, err := q.survey(ctx, only, limit, maxHostsInMemory)
	if err != nil {
		return nil, err
	}
	return s.report(ctx)
}

// survey adds up what report returns, and holds only so many hosts. Of the others it
// keeps what it takes to read them again, or nothing if they are beyond the limit.
func (q *inquiry) survey(ctx context.Context, only string, limit, held int) (*survey, error) {
	s := &survey{inquiry: q, hosts: leadingHosts{limit: limit, held: held}, totals: api.Report{
		AsOf: q.now.UTC(), HostsByState: map[string]int{}, CrawlDelayLimit: api.Milliseconds(q.project.Politeness.MaxCrawlDelay)}}
	r, total := &s.totals, refusals{}
	add := func(h *surveyed) {
		cover(&h.HostTotals) // again: URLs out of scope are known by now
		h.ParkedByRule = h.refusals.list()
		total.merge(h.ParkedByRule)
		r.HostCount++
		r.OriginCount += len(h.Origins)
		addTally(&r.HostTotals, &h.HostTotals)
		r.LargestDelayShortfall = max(r.LargestDelayShortfall, h.LargestDelayShortfall)
		r.HostsByState[h.State]++
		s.hosts.add(h)
	}
	var err error
	if only == "" {
		err = q.eachHost(ctx, true, add)
	} else {
		err = q.oneHost(ctx, only, add)
	}
	if err == nil {
		err = q.sightings(ctx, only, r)
	}
	if err != nil {
		return nil, err
	}
	s.hosts.cut()
	r.ParkedByRule = total.list()
	if limit > 0 {
		r.ParkedByRule = r.ParkedByRule[:min(limit, len(r.ParkedByRule))]
		r.RefusalCounts = r.RefusalCounts[:min(limit, len(r.RefusalCounts))]
		r.SessionIDCounts = r.SessionIDCounts[:min(limit, len(r.SessionIDCounts))]
	}
	return s, nil
}

// oneHost calls done with the host of that name, if the crawl has met it.
func (q *inquiry) oneHost(ctx context.Context, name string, done func(*surveyed)) error {
	origins, err := q.originsOf(ctx, name)
	if err != nil {
		return err
	}
	return q.revisitHost(ctx, origins, true, done)
}

// originsOf returns the origins of a host: none if the crawl has not met it.
func (q *inquiry) originsOf(ctx context.Context, host string) (origins []decorum.Origin, err error) {
	err = storage.OriginNames(ctx, q.store, func(o decorum.Origin) bool {
		if o.Host() == host {
			origins = append(origins, o)
		}
		return true
	})
	return origins, err
}

// sightings adds what was not queued as it was found.
func (q *inquiry) sightings(ctx context.Context, only string, s *api.Report) (err error) {
	if s.RefusalCounts, err = frontier.LoadRefusalCounts(ctx, q.store); err != nil {
		return err
	}
	s.SessionIDCounts, err = frontier.LoadSessionIDCounts(ctx, q.store)
	others := func(r frontier.Sighted) bool { return only != "" && r.Host != only }
	s.RefusalCounts, s.SessionIDCounts = slices.DeleteFunc(s.RefusalCounts, others), slices.DeleteFunc(s.SessionIDCounts, others)
	return err
}

// newHost begins the report on a host with what is remembered of it.
func (q *inquiry) newHost(name string, h *storage.Host) surveyed {
	m := crawler.DecodeHostStats(h.Memo)
	return surveyed{due: h.Due, begun: m.PagesRequested, Host: api.Host{
		Host: name, State: stateDone, ConsecutiveFailures: h.Strikes, Slots: max(h.Slots, 1), RequiredDelay: api.Milliseconds(h.Gap),
		CrawlDelay: api.Milliseconds(m.CrawlDelay), ConfiguredDelay: api.Milliseconds(m.ConfiguredDelay),
		MinObservedDelay: api.Milliseconds(m.Gaps.Min), MedianObservedDelay: api.Milliseconds(m.Gaps.Median()), ObservedDelayCount: m.Gaps.Count(),
		LargestDelayShortfall: api.Milliseconds(m.LargestDelayShortfall),
		LastStatus:            m.LastStatus, LastVisit: m.LastEnd, Address: m.Addr,
		HostTotals: api.HostTotals{Requests: m.Requests, Pages: m.Pages, Failures: m.FailedRequests, Bytes: m.Bytes, RequestTime: api.Milliseconds(m.RequestTime), PagesWithheld: m.PagesWithheld},
		Override:   q.project.override(name),
	}}
}

// override returns what the project says of one host, as it says it; nil if it
// says nothing.
func (p *Project) override(host string) (says map[string]any) {
	h, ok := p.Politeness.Hosts[host]
	if !ok {
		return nil
	}
	text, err := yaml.Marshal(h)
	if err == nil {
		err = yaml.Unmarshal(text, &says)
	}
	if err != nil { // cannot be: it was read from YAML
		return map[string]any{"error": err.Error()}
	}
	return says
}

// The states of a host, from what keeps it from being visited least to what
// does most.
const (
	stateDue      = "due"
	stateWaiting  = "waiting"
	stateHeld     = "held"
	stateSetAside = "set aside"
	stateResting  = "resting"
	stateDone     = "done"
)

var states = []string{stateDue, stateWaiting, stateHeld, stateSetAside, stateResting, stateDone}

// addOrigin adds what the store has of one of the host's origins. The host is
// in the state of the one that can be visited first.
func (h *surveyed) addOrigin(o *storage.OriginInfo, now time.Time) {
	waiting := o.Queued + o.Leased
	if len(h.Origins) == 0 {
		h.first = o.Origin
	} else {
		h.others = append(h.others, o.Origin)
	}
	h.Origins = append(h.Origins, o.Origin.String())
	h.KnownURLs += o.Seen
	h.QueuedURLs += waiting
	h.AwaitingRevisit += o.Resting
	h.ParkedURLs += o.Parked
	h.DoneURLs += max(0, o.Seen-waiting-o.Parked) // hops are queued and not seen
	state := stateOf(o, now)
	before, after := slices.Index(states, h.State), slices.Index(states, state)
	if after > before || after == before && !o.Next.Before(h.next) {
		return
	}
	h.State, h.next, h.DueAt, h.HeldUntil, h.held = state, o.Next, time.Time{}, time.Time{}, decorum.Origin{}
	if o.Next.After(time.Unix(0, 0)) { // before, it says that there is nothing to wait for
		h.DueAt = o.Next.UTC()
	}
	if state == stateHeld || state == stateSetAside {
		h.HeldUntil, h.held = o.Hold.UTC(), o.Origin
	}
}

func stateOf(o *storage.OriginInfo, now time.Time) string {
	switch {
	case o.Queued+o.Leased+o.Resting == 0:
		return stateDone
	case !o.Next.After(now):
		return stateDue
	case o.Queued+o.Leased == 0:
		return stateResting
	case o.Hold.After(now) && o.Dormant:
		return stateSetAside
	case o.Hold.After(now):
		return stateHeld
	}
	return stateWaiting
}

// mind sets a host aside that asks for more than the longest delay: no page of it
// is visited, whether the crawl has come to hold it or not.
func (h *surveyed) mind(maxDelay Duration) {
	if h.QueuedURLs == 0 || time.Duration(h.CrawlDelay) <= time.Duration(maxDelay) {
		return
	}
	h.HoldReason = fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", paceText(h.CrawlDelay), maxDelay)
	if h.State != stateSetAside {
		h.State, h.HeldUntil = stateSetAside, h.DueAt
	}
}

// explainHold says why the gate holds a host, or that its budget is used up.
func (q *inquiry) explainHold(ctx context.Context, h *surveyed) error {
	if h.held.IsZero() {
		return nil
	}
	postponed, err := q.gate.PostponedReason(ctx, q.now, h.held)
	maxPages, bytes := int64(q.project.Scope.MaxPagesPerHost), int64(q.project.Scope.MaxBytesPerHost)
	switch {
	case err != nil:
	case postponed != nil:
		h.HoldReason = plain(postponed.Why)
	case h.HoldReason == "" && h.State == stateSetAside && maxPages > 0 && h.begun >= maxPages:
		h.HoldReason = fmt.Sprintf("it has had its %d pages", maxPages)
	case h.HoldReason == "" && h.State == stateSetAside && bytes > 0 && h.Bytes >= bytes:
		h.HoldReason = fmt.Sprintf("it has sent its %d bytes", bytes)
	}
	return err
}

// A hostKey is what hosts are sorted by, the smallest first.
type hostKey [3]int64

// concern is the smallest for what asks most to be looked at: rests cut short,
// hosts that stand still, and those with most to do.
func concern(h *api.Host) hostKey {
	waiting := int64(h.QueuedURLs)
	if h.State == stateSetAside || h.State == stateHeld {
		waiting += 1 << 60
	}
	return hostKey{-int64(h.LargestDelayShortfall), -waiting, -h.Requests}
}

func (k hostKey) compare(l hostKey) int {
	return cmp.Or(cmp.Compare(k[0], l[0]), cmp.Compare(k[1], l[1]), cmp.Compare(k[2], l[2]))
}
