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
	State string         `json:"state"`        // unknown, queued, resting, parked or done
	As    string         `json:"as,omitempty"` // another URL under which the crawl has met it, before it knew its rules
	Ahead int            `json:"ahead"`        // URLs of the origin that go before it
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
	if err := x.find(ctx, u, e); err != nil {
		return nil, err
	}
	entry := storage.Entry{URL: u, Source: storage.Link, Depth: 1}
	if e.State.entry != nil {
		entry = *e.State.entry
	} else {
		frontier.DefaultOrder(&entry)
	}
	e.State.Class, e.State.Rank = uint8(entry.Class), entry.Rank
	targets, err := x.targets(ctx, u, entry)
	if err != nil {
		return nil, err
	}
	if err := x.scoped(ctx, u, entry, targets, e); err != nil {
		return nil, err
	}
	if err := x.rules(ctx, targets[len(targets)-1], &e.Robots); err != nil {
		return nil, err
	}
	if e.Host, err = x.hostOf(ctx, u.Origin().Host()); err != nil {
		return nil, err
	}
	e.Visit = x.visit(e, targets[len(targets)-1])
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

// targets returns what a visit of the entry, which is u or was kept for it, is to:
// a URL that is kept in a form which the rules now known clean further is judged
// first, and then u, which takes its place.
func (x *explainer) targets(ctx context.Context, u decorum.URL, kept storage.Entry) ([]decorum.URL, error) {
	switch {
	case kept.AsFound:
		return []decorum.URL{kept.Found}, nil
	case kept.Source == storage.Robots: // an errand is as it was named
		return []decorum.URL{kept.URL}, nil
	}
	clean, _, err := x.gate.ExplainClean(ctx, x.params.Clean(kept.URL))
	if clean == kept.URL {
		return []decorum.URL{kept.URL}, err
	}
	return []decorum.URL{kept.URL, u}, err
}

// scoped asks the scope about the targets of an entry, and of a URL that is not
// known whether its host may have another.
func (x *explainer) scoped(ctx context.Context, u decorum.URL, entry storage.Entry, targets []decorum.URL, e *explained) error {
	s := &e.Scope
	s.In = true
	if pattern, folded := frontier.Pattern(u.Path()); folded {
		s.Pattern = pattern
	}
	if x.scope == nil {
		s.Why = "not known: a seed file cannot be read"
		return nil
	}
	var refusal, err error
	for _, entry.URL = range targets {
		if refusal == nil {
			refusal = x.scope.Check(entry)
		}
	}
	if refusal == nil && e.State.State == stateUnknown {
		refusal, err = frontier.New(x.store, frontier.Config{Scope: x.scope}).Room(ctx, u)
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
