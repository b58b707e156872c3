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
func addTally(t, u *api.Tally) {
	t.Requests += u.Requests
	t.Pages += u.Pages
	t.Failures += u.Failures
	t.Bytes += u.Bytes
	t.Spent += u.Spent
	t.Known += u.Known
	t.Done += u.Done
	t.Queued += u.Queued
	t.Resting += u.Resting
	t.Parked += u.Parked
	t.Blocked += u.Blocked
	t.Reserved += u.Reserved
	t.OutOfScope += u.OutOfScope
	t.Withheld += u.Withheld
	cover(t)
}

// cover works out the coverage.
func cover(t *api.Tally) {
	t.Coverage = 1
	if all := t.Known - t.OutOfScope; all > 0 {
		t.Coverage = float64(t.Done) / float64(all)
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
		At: q.now.UTC(), States: map[string]int{}, MaxDelay: api.Milliseconds(q.project.Politeness.MaxCrawlDelay)}}
	r, total := &s.totals, refusals{}
	add := func(h *surveyed) {
		cover(&h.Tally) // again: URLs out of scope are known by now
		h.Refusals = h.refusals.list()
		total.merge(h.Refusals)
		r.Count++
		r.Origins += len(h.Origins)
		addTally(&r.Tally, &h.Tally)
		r.Shortfall = max(r.Shortfall, h.Shortfall)
		r.States[h.State]++
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
	r.Refusals = total.list()
	if limit > 0 {
		r.Refusals = r.Refusals[:min(limit, len(r.Refusals))]
		r.Refused = r.Refused[:min(limit, len(r.Refused))]
		r.Cleaned = r.Cleaned[:min(limit, len(r.Cleaned))]
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
	if s.Refused, err = frontier.LoadRefusalCounts(ctx, q.store); err != nil {
		return err
	}
	s.Cleaned, err = frontier.LoadSessionIDCounts(ctx, q.store)
	others := func(r frontier.Sighted) bool { return only != "" && r.Host != only }
	s.Refused, s.Cleaned = slices.DeleteFunc(s.Refused, others), slices.DeleteFunc(s.Cleaned, others)
	return err
}

// newHost begins the report on a host with what is remembered of it.
func (q *inquiry) newHost(name string, h *storage.Host) surveyed {
	m := crawler.ReadHostMemo(h.Memo)
	return surveyed{due: h.Due, begun: m.Begun, Host: api.Host{
		Host: name, State: stateDone, Strikes: h.Strikes, Slots: max(h.Slots, 1), Owed: api.Milliseconds(h.Gap),
		Declared: api.Milliseconds(m.Declared), Configured: api.Milliseconds(m.Configured),
		MinObservedDelay: api.Milliseconds(m.Gaps.Min), Median: api.Milliseconds(m.Gaps.Median()), Gaps: m.Gaps.Count(),
		Shortfall:  api.Milliseconds(m.Shortfall),
		LastStatus: m.Status, LastVisit: m.Last, Address: m.Addr,
		Tally:    api.Tally{Requests: m.Requests, Pages: m.Pages, Failures: m.Failures, Bytes: m.Bytes, Spent: api.Milliseconds(m.Spent), Withheld: m.Withheld},
		Override: q.project.override(name),
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
	h.Known += o.Seen
	h.Queued += waiting
	h.Resting += o.Resting
	h.Parked += o.Parked
	h.Done += max(0, o.Seen-waiting-o.Parked) // hops are queued and not seen
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
	if h.Queued == 0 || time.Duration(h.Declared) <= time.Duration(maxDelay) {
		return
	}
	h.Why = fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", paceText(h.Declared), maxDelay)
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
		h.Why = plain(postponed.Why)
	case h.Why == "" && h.State == stateSetAside && maxPages > 0 && h.begun >= maxPages:
		h.Why = fmt.Sprintf("it has had its %d pages", maxPages)
	case h.Why == "" && h.State == stateSetAside && bytes > 0 && h.Bytes >= bytes:
		h.Why = fmt.Sprintf("it has sent its %d bytes", bytes)
	}
	return err
}

// A hostKey is what hosts are sorted by, the smallest first.
type hostKey [3]int64

// concern is the smallest for what asks most to be looked at: rests cut short,
// hosts that stand still, and those with most to do.
func concern(h *api.Host) hostKey {
	waiting := int64(h.Queued)
	if h.State == stateSetAside || h.State == stateHeld {
		waiting += 1 << 60
	}
	return hostKey{-int64(h.Shortfall), -waiting, -h.Requests}
}

func (k hostKey) compare(l hostKey) int {
	return cmp.Or(cmp.Compare(k[0], l[0]), cmp.Compare(k[1], l[1]), cmp.Compare(k[2], l[2]))
}
