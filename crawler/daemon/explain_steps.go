package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// An explained URL is all that a crawl makes of it.
type explained struct {
	Input  string         `json:"input"`
	Steps  []rewriting    `json:"steps"` // from the text to URL
	URL    string         `json:"url"`   // under which it is queued
	Scope  explainedScope `json:"scope"`
	Robots explainedRules `json:"robots"`
	State  explainedState `json:"state"`
	Host   *hostReport    `json:"host,omitempty"` // as the crawl knows it
	Visit  explainedVisit `json:"visit"`
}

// A rewriting is a step from the text to the URL that is queued.
type rewriting struct {
	Step string   `json:"step"`          // canonical, https, params or clean_param
	URL  string   `json:"url"`           // after it
	Why  []string `json:"why,omitempty"` // what was changed, by which rule; empty: nothing was
}

type explainedScope struct {
	In      bool            `json:"in"`
	Reason  frontier.Reason `json:"reason,omitempty"` // why not
	Why     string          `json:"why,omitempty"`    // likewise
	Pattern string          `json:"pattern,omitempty"`
}

type explainedRules struct {
	Outcome string    `json:"outcome"`           // of the lookup: Outcome.String
	Fetched time.Time `json:"fetched,omitzero"`  // when
	Closed  string    `json:"closed,omitempty"`  // why the origin cannot be visited for now
	Until   time.Time `json:"until,omitzero"`    // it is closed
	Judged  *bool     `json:"judged,omitempty"`  // as a crawl does, purposes included; nil: no rules are known
	Reason  string    `json:"because,omitempty"` // the rule that decides
	robots.Explanation
}

type explainedState struct {
	State string         `json:"state"` // unknown, queued, resting, parked or done
	Ahead int            `json:"ahead"` // URLs of the origin that go before it
	Entry *urlLine       `json:"entry,omitempty"`
	Class uint8          `json:"class"`
	Rank  uint16         `json:"rank"`
	entry *storage.Entry // as it is kept; nil if it waits for nothing
	at    time.Time
}

type explainedVisit struct {
	When string    `json:"when"` // now, at, never or after (the URLs that go before it)
	At   time.Time `json:"at,omitzero"`
	Why  string    `json:"why"`
}

// An explainer explains URLs of a crawl.
type explainer struct {
	*kept
	gate *robots.Gate
}

// explain takes a URL through the steps of the crawl.
func (x *explainer) explain(ctx context.Context, text string) (*explained, error) {
	e := &explained{Input: text}
	u, steps, err := x.rewrite(ctx, text)
	if err != nil {
		return nil, err
	}
	e.Steps, e.URL = steps, u.String()
	if err := x.find(ctx, u, &e.State); err != nil {
		return nil, err
	}
	entry := storage.Entry{URL: u, Source: storage.Link, Depth: 1}
	if e.State.entry != nil {
		entry = *e.State.entry
	} else {
		frontier.DefaultOrder(&entry)
	}
	e.State.Class, e.State.Rank = uint8(entry.Class), entry.Rank
	if err := x.scoped(ctx, entry, &e.Scope); err != nil {
		return nil, err
	}
	target := u
	if entry.AsFound {
		target = entry.Found
	}
	if u.Origin().IsHTTP() {
		if err := x.rules(ctx, target, &e.Robots); err != nil {
			return nil, err
		}
	}
	if e.Host, err = x.hostOf(ctx, u.Origin().Host()); err != nil {
		return nil, err
	}
	e.Visit = x.visit(e)
	return e, nil
}

// rewrite takes a text to the URL under which it is queued.
func (x *explainer) rewrite(ctx context.Context, text string) (u decorum.URL, steps []rewriting, err error) {
	if u, err = decorum.ParseURL(text); err != nil {
		return u, nil, err
	}
	steps = []rewriting{{"canonical", u.String(), canonicalised(text, u)}}
	secure, err := frontier.New(x.store, frontier.Config{Scope: x.scope}).Secure(ctx, u)
	if err != nil {
		return u, nil, err
	}
	if secure != u {
		u = secure
		steps = append(steps, rewriting{"https", u.String(), []string{"the pages of its origin redirect to https"}})
	}
	u, changes := x.params.Explain(u)
	step := rewriting{Step: "params", URL: u.String()}
	for _, c := range changes {
		step.Why = append(step.Why, strings.TrimSpace(c.Took+" by "+c.Rule))
	}
	steps = append(steps, step)
	u, taken, err := x.gate.ExplainClean(ctx, u)
	step = rewriting{Step: "clean_param", URL: u.String()}
	for _, t := range taken {
		step.Why = append(step.Why, fmt.Sprintf("%s by %s (line %d)", t.Parameter, plain(t.Rule), t.Line))
	}
	return u, append(steps, step), err
}

// canonicalised says which parts of text have another form in u.
func canonicalised(text string, u decorum.URL) (why []string) {
	if text == u.String() {
		return nil
	}
	trimmed := strings.TrimSpace(text)
	if trimmed != text {
		why = append(why, "blanks around it are dropped")
	}
	bare, fragment, _ := strings.Cut(trimmed, "#")
	if bare != trimmed {
		why = append(why, "the fragment #"+plain(fragment)+" is dropped")
	}
	path := max(0, strings.IndexByte(bare, ':')+len("://"))
	path = min(path+max(0, strings.IndexAny(bare[min(path, len(bare)):]+"/", "/?\\")), len(bare))
	if origin := bare[:path]; origin != u.Origin().String() {
		why = append(why, "the origin "+plain(origin)+" is written "+u.Origin().String())
	}
	if bare[path:] != u.Path() {
		why = append(why, "the path "+plain(bare[path:])+" is written "+u.Path())
	}
	return why
}

// find looks for a URL in the frontier.
func (x *explainer) find(ctx context.Context, u decorum.URL, s *explainedState) error {
	s.State = "unknown"
	known, err := x.store.Known(ctx, u)
	if err != nil || !known {
		return err
	}
	s.State = "done"
	for state, name := range stateNames {
		ahead := 0
		err := x.store.URLs(ctx, u.Origin(), storage.State(state), func(e storage.Entry, at time.Time) bool {
			if e.URL != u || !e.For.IsZero() {
				ahead++
				return true
			}
			s.State, s.Ahead, s.entry, s.at = name, ahead, &e, at
			s.Entry = newURLLine(&e, storage.State(state), at)
			return false
		})
		if err != nil || s.entry != nil {
			return err
		}
	}
	return nil
}

// scoped asks the scope, and of a URL that is not known whether its host may
// have another.
func (x *explainer) scoped(ctx context.Context, e storage.Entry, s *explainedScope) error {
	s.In = true
	if pattern, folded := frontier.Pattern(e.URL.Path()); folded {
		s.Pattern = pattern
	}
	if x.scope == nil {
		s.Why = "not known: a seed file cannot be read"
		return nil
	}
	known, err := x.store.Known(ctx, e.URL)
	if err != nil {
		return err
	}
	if e.AsFound {
		e.URL = e.Found
	}
	refusal := x.scope.Check(e)
	if refusal == nil && !known {
		refusal, err = frontier.New(x.store, frontier.Config{Scope: x.scope}).Room(ctx, e.URL)
	}
	if refusal != nil {
		s.In, s.Reason, s.Why = false, frontier.ReasonOf(refusal), cause(refusal)
	}
	return err
}

// rules asks the robots.txt that is kept.
func (x *explainer) rules(ctx context.Context, u decorum.URL, r *explainedRules) error {
	o := u.Origin()
	file, err := x.gate.Known(ctx, o)
	if err != nil {
		return err
	}
	r.Outcome, r.Fetched = file.Outcome.String(), file.Fetched
	closed, err := x.gate.WhyClosed(ctx, x.now, o)
	if err != nil {
		return err
	}
	if closed != nil {
		r.Closed, r.Until = plain(closed.Why), closed.Until
	}
	judge, err := x.gate.Judge(ctx, o)
	if err != nil || judge == nil {
		return err
	}
	v := judge(u)
	r.Judged, r.Reason = &v.Allowed, "no rule speaks of it"
	if v.Rule != "" {
		r.Reason = fmt.Sprintf("%s (line %d, group %s)", plain(v.Rule), v.Line, plain(v.Group))
	}
	r.Explanation, err = x.gate.Explain(ctx, u)
	r.Verdict = v // which may be that of a wish for AI use
	return err
}

// hostOf returns the report on a host, nil if the crawl has not met it.
func (x *explainer) hostOf(ctx context.Context, name string) (*hostReport, error) {
	var h *hostReport
	err := x.store.Origins(ctx, func(o storage.OriginInfo) bool {
		if o.Origin.Host() == name {
			if h == nil {
				h = x.newHost(name, &o.Host)
			}
			h.addOrigin(&o, x.now)
		}
		return true
	})
	if err != nil || h == nil {
		return nil, err
	}
	h.cover()
	return h, x.explainHolds(ctx, []*hostReport{h})
}

// visit says when the URL is visited, and why.
func (x *explainer) visit(e *explained) explainedVisit {
	never := func(why string) explainedVisit { return explainedVisit{When: "never", Why: why} }
	switch u, _ := decorum.ParseURL(e.URL); {
	case u == u.Origin().RobotsURL():
		return never("it is no page: it is asked for when a URL of its origin is to be judged")
	case !e.Scope.In:
		return never("it is out of scope: " + e.Scope.Why)
	case e.Robots.Judged != nil && !*e.Robots.Judged:
		return never("robots.txt closes it, by " + e.Robots.Reason + "; it is asked again when that changes")
	case e.State.State == "done":
		return never("it was visited, or given up, and pages are not visited again")
	case e.State.State == stateNames[storage.InParking]:
		return never("it is parked; a crawl that goes on will judge it again")
	case e.State.State == "unknown":
		return x.visitUnknown(e)
	}
	return x.visitKnown(e)
}

// visitUnknown is visit for a URL that the crawl has not met.
func (x *explainer) visitUnknown(e *explained) explainedVisit {
	why := "the crawl does not know it: it is queued when a page, sitemap or redirect names it"
	if e.Robots.Judged == nil {
		why += "; robots.txt is fetched first"
	}
	return explainedVisit{When: "never", Why: why}
}

// visitKnown is visit for one that waits.
func (x *explainer) visitKnown(e *explained) explainedVisit {
	v := explainedVisit{When: "now", Why: "its host is due"}
	if e.Robots.Judged == nil {
		v.Why += ", and its robots.txt is fetched first"
	}
	later := func(at time.Time, why string) {
		if at.After(x.now) && at.After(v.At) {
			v = explainedVisit{When: "at", At: at.UTC(), Why: why}
		}
	}
	if h := e.Host; h != nil {
		later(h.due, fmt.Sprintf("its host rests for %v after its last visit", h.Owed))
		later(h.HeldUntil, "its origin is held"+because(h.Why))
	}
	later(e.Robots.Until, "its robots.txt is to be asked for again then: "+e.Robots.Closed)
	if policy := x.project.policy().For(hostOfURL(e.URL), x.now); !policy.Window.Open(x.now) {
		later(policy.Window.Opens(x.now), "the hours of visits begin then")
	}
	what := "it was put off after a failed visit"
	if e.State.State == stateNames[storage.InRest] {
		what = "it was visited, and its revisit is due then"
	}
	later(e.State.at, what)
	if e.State.Ahead > 0 && e.State.State == stateNames[storage.InQueue] {
		gap := time.Duration(0)
		if e.Host != nil {
			gap = time.Duration(max(e.Host.Owed, e.Host.Declared, e.Host.Configured))
		}
		first := x.now
		if !v.At.IsZero() {
			first = v.At
		}
		v = explainedVisit{When: "after", At: first.Add(time.Duration(e.State.Ahead) * gap).UTC(),
			Why: fmt.Sprintf("%d URLs of its origin go before it, at a visit in %v or more; from %s on: %s",
				e.State.Ahead, milliseconds(gap), clock(first), v.Why)}
	}
	return v
}

// hostOfURL returns the host of a URL in canonical form.
func hostOfURL(s string) string {
	u, _ := decorum.ParseURL(s)
	return u.Origin().Host()
}
