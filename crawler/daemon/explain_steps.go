package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// An explained URL is what a crawl makes of it, and what that rests on.
type explained struct {
	api.Explanation
	found foundURL
	host  *surveyed // nil if the crawl has not met it
}

// A foundURL is what the frontier holds of it.
type foundURL struct {
	api.ExplainedFrontierState
	entry *storage.Entry // as it is kept; nil if it waits for nothing
	at    time.Time
}

// explain takes a URL through the steps of the crawl.
func (q *inquiry) explain(ctx context.Context, text string) (*api.Explanation, error) {
	e := &explained{Explanation: api.Explanation{Input: text}}
	u, steps, err := q.rewrite(ctx, text)
	if err != nil {
		return nil, err
	}
	e.RewriteSteps, e.URL = steps, u.String()
	if err := q.find(ctx, u, e); err != nil {
		return nil, err
	}
	entry := storage.Entry{URL: u, Source: storage.Link, Depth: 1}
	if e.found.entry != nil {
		entry = *e.found.entry
	} else {
		frontier.DefaultOrder(&entry)
	}
	e.FrontierState = e.found.ExplainedFrontierState
	e.FrontierState.Class, e.FrontierState.Rank = uint8(entry.Class), entry.Rank
	targets, err := q.targets(ctx, u, entry)
	if err != nil {
		return nil, err
	}
	if err := q.scoped(ctx, u, entry, targets, e); err != nil {
		return nil, err
	}
	if err := q.rules(ctx, targets[len(targets)-1], &e.Robots); err != nil {
		return nil, err
	}
	if e.host, err = q.hostOf(ctx, u.Origin().Host()); err != nil {
		return nil, err
	}
	if e.host != nil {
		e.Host = &e.host.Host
	}
	e.Visit = q.visit(e, targets[len(targets)-1])
	return &e.Explanation, nil
}

// rewrite takes a text to the URL under which it is queued.
func (q *inquiry) rewrite(ctx context.Context, text string) (u decorum.URL, steps []api.RewriteStep, err error) {
	if u, err = decorum.ParseURL(text); err != nil {
		return u, nil, err
	}
	steps = []api.RewriteStep{{Step: "canonical", URL: u.String(), Changes: canonicalised(text, u)}}
	secure, err := frontier.New(q.store, frontier.Config{Scope: q.scope}).Secure(ctx, u)
	if err != nil {
		return u, nil, err
	}
	if secure != u {
		u = secure
		steps = append(steps, api.RewriteStep{Step: "https", URL: u.String(), Changes: []string{"the pages of its origin redirect to https"}})
	}
	u, changes := q.params.Explain(u)
	step := api.RewriteStep{Step: "params", URL: u.String()}
	for _, c := range changes {
		step.Changes = append(step.Changes, strings.TrimSpace(c.Took+" by "+c.Rule))
	}
	steps = append(steps, step)
	u, taken, err := q.gate.ExplainClean(ctx, u)
	step = api.RewriteStep{Step: "clean_param", URL: u.String()}
	for _, t := range taken {
		step.Changes = append(step.Changes, fmt.Sprintf("%s by %s (line %d)", t.Parameter, plain(t.Rule), t.Line))
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
func (q *inquiry) targets(ctx context.Context, u decorum.URL, stored storage.Entry) ([]decorum.URL, error) {
	switch {
	case stored.AsFound:
		return []decorum.URL{stored.Found}, nil
	case stored.Source == storage.Robots: // an errand is as it was named
		return []decorum.URL{stored.URL}, nil
	}
	clean, _, err := q.gate.ExplainClean(ctx, q.params.Clean(stored.URL))
	if clean == stored.URL {
		return []decorum.URL{stored.URL}, err
	}
	return []decorum.URL{stored.URL, u}, err
}

// scoped asks the scope about the targets of an entry, and of a URL that is not
// known whether its host may have another.
func (q *inquiry) scoped(ctx context.Context, u decorum.URL, entry storage.Entry, targets []decorum.URL, e *explained) error {
	s := &e.Scope
	s.InScope = true
	if pattern, folded := frontier.Pattern(u.Path()); folded {
		s.CountedPattern = pattern
	}
	if q.scope == nil {
		s.Detail = "not known: a seed file cannot be read"
		return nil
	}
	var refusal, err error
	for _, entry.URL = range targets {
		if refusal == nil {
			refusal = q.scope.Check(entry)
		}
	}
	if refusal == nil && e.FrontierState.State == stateUnknown {
		refusal, err = frontier.New(q.store, frontier.Config{Scope: q.scope}).CheckURLLimits(ctx, u)
	}
	if refusal != nil {
		s.InScope, s.Reason, s.Detail = false, frontier.ReasonOf(refusal), cause(refusal)
	}
	return err
}

// rules asks the robots.txt that is kept, and the tdmrep.json.
func (q *inquiry) rules(ctx context.Context, u decorum.URL, r *api.ExplainedRules) error {
	o := u.Origin()
	file, err := q.gate.Known(ctx, o)
	if err != nil {
		return err
	}
	r.Outcome, r.FetchedAt = file.Outcome.String(), file.Fetched
	postponed, err := q.gate.PostponedReason(ctx, q.now, o)
	if err != nil {
		return err
	}
	if postponed != nil {
		r.OriginPostponedReason, r.OriginPostponedUntil = plain(postponed.Why), postponed.Until
	}
	evaluate, err := crawler.NewVerdictFunc(ctx, q.gate, q.store, o)
	if err != nil || evaluate == nil {
		return err
	}
	reserved, err := crawler.ReadTDMRepState(ctx, q.store, o)
	if err != nil {
		return err
	}
	v := evaluate(u)
	r.MayVisit, r.Reason = &v.Allowed, "no rule speaks of it"
	if v.Rule != "" {
		r.Reason = ruleText(v)
	}
	r.Explanation, err = q.gate.Explain(ctx, u)
	r.Signals = append(r.Signals, reserved.UsageSignals(u)...)
	if r.Verdict = v; !v.NotForIndexing { // which may be that of a wish for AI use
		r.IndexingVerdict = nil
	}
	return err
}

// hostOf returns what is known of a host, nil if the crawl has not met it.
func (q *inquiry) hostOf(ctx context.Context, name string) (*surveyed, error) {
	origins, err := q.originsOf(ctx, name)
	if err != nil {
		return nil, err
	}
	h, err := q.readHost(ctx, origins)
	if err != nil || h == nil {
		return nil, err
	}
	return h, q.explainHold(ctx, h)
}
