package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// A survey is the report on a crawl. Memory grows with its hosts, not with
// URLs.
type survey struct {
	totals
	Hosts []*hostReport `json:"hosts"`
}

// A tally is what can be added up over hosts.
type tally struct {
	Requests   int64        `json:"requests"`
	Pages      int64        `json:"pages"`    // visits to pages that were answered
	Failures   int64        `json:"failures"` // requests without a whole answer, 408, 425, 429, 5xx
	Bytes      int64        `json:"bytes"`
	Spent      milliseconds `json:"spent_ms"` // in requests
	Known      int          `json:"known"`    // URLs ever queued
	Done       int          `json:"done"`     // of Known: visited, or given up
	Queued     int          `json:"queued"`
	Resting    int          `json:"resting"` // visited, and to be visited again
	Parked     int          `json:"parked"`
	Blocked    int          `json:"blocked_by_robots"` // of Parked
	OutOfScope int          `json:"out_of_scope"`      // of Parked
	Coverage   float64      `json:"coverage"`          // Done / (Known - OutOfScope)
}

func (t *tally) add(u *tally) {
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
	t.OutOfScope += u.OutOfScope
	t.cover()
}

func (t *tally) cover() {
	t.Coverage = 1
	if all := t.Known - t.OutOfScope; all > 0 {
		t.Coverage = float64(t.Done) / float64(all)
	}
}

// The totals are what is said of the crawl as a whole.
type totals struct {
	At       time.Time      `json:"at"`
	Count    int            `json:"host_count"`
	Origins  int            `json:"origin_count"`
	States   map[string]int `json:"states"` // hosts in each
	MaxDelay milliseconds   `json:"max_crawl_delay_ms"`
	tally
	Shortfall milliseconds `json:"shortfall_ms"`
	Refusals  []refusal    `json:"refusals,omitempty"`
	// Refused counts sightings of URLs that were never queued, by host and reason.
	Refused []frontier.Sighted `json:"refused,omitempty"`
	// Cleaned counts sightings of URLs with the id of a session in the path, which
	// were queued without it, by host.
	Cleaned []frontier.Sighted `json:"cleaned,omitempty"`
}

// A hostReport is what is said of one host.
type hostReport struct {
	Host       string       `json:"host"`
	State      string       `json:"state"`
	DueAt      time.Time    `json:"due_at,omitzero"`
	HeldUntil  time.Time    `json:"held_until,omitzero"`
	Why        string       `json:"why,omitempty"` // it is held
	Declared   milliseconds `json:"declared_delay_ms"`
	Configured milliseconds `json:"configured_delay_ms"`
	Owed       milliseconds `json:"owed_ms"` // the rest after its last request
	Least      milliseconds `json:"least_gap_ms"`
	Median     milliseconds `json:"median_gap_ms"`
	Gaps       int64        `json:"gaps"` // that Least and Median are of
	Shortfall  milliseconds `json:"shortfall_ms"`
	Strikes    int          `json:"strikes"` // failures in a row, as back-off counts them
	Slots      int          `json:"slots"`
	tally
	LastStatus int            `json:"last_status"`
	LastVisit  time.Time      `json:"last_visit,omitzero"`
	Address    netip.Addr     `json:"address,omitzero"`
	Override   map[string]any `json:"override,omitempty"` // politeness.hosts, of this one
	Origins    []string       `json:"origins"`
	Refusals   []refusal      `json:"refusals,omitempty"` // of its parked URLs

	refusals refusals
	due      time.Time      // of the host's clock
	held     decorum.Origin // whose hold State tells of
	begun    int64          // pages that count for max_pages_per_host
	next     time.Time
}

// milliseconds is a duration that JSON shows as milliseconds, rounded up: a
// shortfall of less than one is not none.
type milliseconds time.Duration

func (m milliseconds) MarshalJSON() ([]byte, error) {
	whole := (time.Duration(m) + time.Millisecond - 1) / time.Millisecond
	return fmt.Append(nil, int64(whole)), nil
}

// String rounds for people.
func (m milliseconds) String() string {
	d := time.Duration(m)
	switch {
	case d == 0:
		return "-"
	case d >= 10*time.Second:
		return Duration(d.Round(time.Second)).String()
	}
	return Duration(d.Round(time.Millisecond)).String()
}

// survey asks the stores for the report, of one host if it is named. The hosts
// come in the order of what matters, at most limit of them unless it is 0.
func (k *kept) survey(ctx context.Context, only string, limit int) (*survey, error) {
	hosts := map[string]*hostReport{}
	var parked []decorum.Origin
	origins := 0
	err := k.store.Origins(ctx, func(o storage.OriginInfo) bool {
		name := o.Origin.Host()
		if only != "" && name != only {
			return true
		}
		if hosts[name] == nil {
			hosts[name] = k.newHost(name, &o.Host)
		}
		hosts[name].addOrigin(&o, k.now)
		origins++
		if o.Parked > 0 {
			parked = append(parked, o.Origin)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	s := &survey{totals: totals{At: k.now.UTC(), Count: len(hosts), Origins: origins, States: map[string]int{},
		MaxDelay: milliseconds(k.project.Politeness.MaxCrawlDelay)}}
	for _, o := range parked {
		if err := k.judgeParked(ctx, o, hosts[o.Host()]); err != nil {
			return nil, err
		}
	}
	if s.Refused, err = frontier.KeptRefusals(ctx, k.store); err != nil {
		return nil, err
	}
	if s.Cleaned, err = frontier.KeptCleanings(ctx, k.store); err != nil {
		return nil, err
	}
	others := func(r frontier.Sighted) bool { return only != "" && r.Host != only }
	s.Refused, s.Cleaned = slices.DeleteFunc(s.Refused, others), slices.DeleteFunc(s.Cleaned, others)
	all := refusals{}
	for _, h := range hosts {
		h.cover()
		h.mind(k.project.Politeness.MaxCrawlDelay)
		h.Refusals = h.refusals.list()
		all.merge(h.Refusals)
		s.Hosts = append(s.Hosts, h)
		s.tally.add(&h.tally)
		s.Shortfall = max(s.Shortfall, h.Shortfall)
		s.States[h.State]++
	}
	s.Refusals = all.list()
	slices.SortFunc(s.Hosts, (*hostReport).compare)
	if limit > 0 {
		s.Hosts = s.Hosts[:min(limit, len(s.Hosts))]
		s.Refusals = s.Refusals[:min(limit, len(s.Refusals))]
		s.Refused = s.Refused[:min(limit, len(s.Refused))]
		s.Cleaned = s.Cleaned[:min(limit, len(s.Cleaned))]
	}
	return s, k.explainHolds(ctx, s.Hosts)
}

// newHost begins the report on a host with what is remembered of it.
func (k *kept) newHost(name string, h *storage.Host) *hostReport {
	m := crawler.ReadHostMemo(h.Memo)
	r := &hostReport{
		Host: name, State: stateDone, Strikes: h.Strikes, Slots: max(h.Slots, 1), Owed: milliseconds(h.Gap), due: h.Due,
		Declared: milliseconds(m.Declared), Configured: milliseconds(m.Configured),
		Least: milliseconds(m.Gaps.Least), Median: milliseconds(m.Gaps.Median()), Gaps: m.Gaps.Count(),
		Shortfall:  milliseconds(m.Shortfall),
		LastStatus: m.Status, LastVisit: m.Last, Address: m.Addr,
		tally: tally{Requests: m.Requests, Pages: m.Pages, Failures: m.Failures, Bytes: m.Bytes, Spent: milliseconds(m.Spent)},
	}
	r.begun, r.Override = m.Begun, k.overrides[name]
	return r
}

// overrides returns what the project says of single hosts, as it says it.
func (p *Project) overrides() (hosts map[string]map[string]any, err error) {
	text, err := yaml.Marshal(p.Politeness.Hosts)
	if err == nil {
		err = yaml.Unmarshal(text, &hosts)
	}
	return hosts, err
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
func (h *hostReport) addOrigin(o *storage.OriginInfo, now time.Time) {
	waiting := o.Queued + o.Leased
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
func (h *hostReport) mind(longest Duration) {
	if h.Queued == 0 || time.Duration(h.Declared) <= time.Duration(longest) {
		return
	}
	h.Why = fmt.Sprintf("its Crawl-delay of %v is longer than max_crawl_delay, %v", h.Declared, longest)
	if h.State != stateSetAside {
		h.State, h.HeldUntil = stateSetAside, h.DueAt
	}
}

// explainHolds says why the gate holds hosts, or that they have had their pages.
func (k *kept) explainHolds(ctx context.Context, hosts []*hostReport) error {
	for _, h := range hosts {
		if h.held.IsZero() {
			continue
		}
		closed, err := k.gate.WhyClosed(ctx, k.now, h.held)
		if err != nil {
			return err
		}
		most := int64(k.project.Scope.MaxPagesPerHost)
		switch {
		case closed != nil:
			h.Why = plain(closed.Why)
		case h.Why == "" && h.State == stateSetAside && most > 0 && h.begun >= most:
			h.Why = fmt.Sprintf("it has had its %d pages", most)
		}
	}
	return nil
}

// compare puts first what asks to be looked at: rests cut short, hosts that
// stand still, and those with most to do.
func (h *hostReport) compare(g *hostReport) int {
	still := func(r *hostReport) int {
		if r.State == stateSetAside || r.State == stateHeld {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(g.Shortfall, h.Shortfall), still(g)-still(h), cmp.Compare(g.Queued, h.Queued),
		cmp.Compare(g.Requests, h.Requests), strings.Compare(h.Host, g.Host),
	)
}
