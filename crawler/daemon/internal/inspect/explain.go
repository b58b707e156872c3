package inspect

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/httpcache"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/timecmp"
	"github.com/decorum-crawler/decorum/storage"
)

// An explainedURL is the explanation of a URL, with the values from which its parts are derived.
type explainedURL struct {
	api.URLExplanation
	urlFrontierState urlFrontierState
	hostReport       *HostReport // nil if the crawl has not met the host
	scopeDecision    decorum.Decision
	decisions        visitDecisions
}

// visitDecisions are the Decisions about a visit, in the order of decorum.Decision: of each part
// that can decide without reserving anything. The functions that decide are those of the crawl.
type visitDecisions []decorum.Decision

// first returns the first Decision that match accepts. It is to Proceed if match accepts none of
// them.
func (ds visitDecisions) first(match func(decorum.Decision) bool) decorum.Decision {
	for _, d := range ds {
		if match(d) {
			return d
		}
	}
	return decorum.Decision{}
}

// A urlFrontierState is what the frontier holds of a URL.
type urlFrontierState struct {
	api.ExplainedFrontierState
	storedEntry *storage.Entry // its entry; nil if it is neither queued, awaiting a revisit nor parked
	dueAt       time.Time
}

// ExplainURL takes a URL, which text spells, through the steps of the crawl. It sends nothing and
// changes nothing.
func (q *Inspector) ExplainURL(ctx context.Context, text string) (*api.URLExplanation, error) {
	e, err := q.explainURL(ctx, text)
	if err != nil {
		return nil, err
	}
	return &e.URLExplanation, nil
}

// explainURL fills in the parts of the explanation in the order of the crawl: the rewritten URL, its
// state in the frontier, the scope, the rules, the host, and the next visit.
func (q *Inspector) explainURL(ctx context.Context, text string) (*explainedURL, error) {
	e := &explainedURL{URLExplanation: api.URLExplanation{Input: text}}
	u, steps, err := q.RewriteURL(ctx, text)
	if err != nil {
		return nil, err
	}
	e.RewriteSteps, e.URL = steps, u.String()
	if err := q.findURLOrEarlierForm(ctx, u, e); err != nil {
		return nil, err
	}
	// Explain a URL that the frontier does not hold as a link on a seed.
	entry := storage.Entry{URL: u, Source: storage.SourceLink, Depth: 1}
	if e.urlFrontierState.storedEntry != nil {
		entry = *e.urlFrontierState.storedEntry
	} else {
		frontier.AssignDefaultOrder(&entry)
	}
	e.FrontierState = e.urlFrontierState.ExplainedFrontierState
	e.FrontierState.PriorityClass, e.FrontierState.PriorityRank = uint8(entry.PriorityClass), entry.PriorityRank
	// Check the scope for all targets, and the rules for the URL that the visit requests.
	targets, err := q.visitTargets(ctx, u, entry)
	if err != nil {
		return nil, err
	}
	target := targets[len(targets)-1]
	if err := q.explainScope(ctx, u, entry, targets, e); err != nil {
		return nil, err
	}
	if err := q.explainRules(ctx, target, &e.Robots); err != nil {
		return nil, err
	}
	if e.hostReport, err = q.lookUpHost(ctx, u.Origin().Host(), false); err == nil && e.hostReport != nil {
		e.Host = &e.hostReport.Host
		err = q.SetHostHoldReason(ctx, e.hostReport)
	}
	if err != nil {
		return nil, err
	}
	// Decide about the visit, and show the first decision against it.
	if e.decisions, err = q.decideVisit(ctx, target, e); err != nil {
		return nil, err
	}
	e.Visit = q.explainVisit(e, target)
	d := e.decisions.first(func(d decorum.Decision) bool { return d.Action != decorum.Proceed })
	if d.Action != decorum.Proceed {
		e.Visit.Decision = &api.ExplainedDecision{Action: d.Action.String(),
			Reason: string(d.Reason), Until: d.Until.UTC(),
			Rule: plaintext.ReplaceControlChars(d.Rule), Line: d.Line}
	}
	return e, nil
}

// decideVisit returns the Decisions about a visit to u. The scope has decided already: see
// explainScope.
func (q *Inspector) decideVisit(ctx context.Context, u decorum.URL, e *explainedURL) (visitDecisions, error) {
	rules, err := crawler.KnownRulesDecision(ctx, q.Gate, q.FrontierStore, q.AsOf, u)
	if err != nil {
		return nil, err
	}
	delay, opensAt, err := q.Gate.DelayAndNextAllowedTime(ctx, u.Origin(), q.AsOf)
	if err != nil {
		return nil, err
	}
	if e.hostReport != nil { // another origin of the host may have a longer Crawl-delay
		delay = max(delay, time.Duration(e.hostReport.CrawlDelay))
	}
	policy := q.Project.PolitenessPolicy().ForHost(u.Origin().Host(), q.AsOf)
	connectTo, _ := dialrules.ParseConnectToRules(q.Project.Fetch.ConnectToRules) // valid, since the project is
	port, _ := decorum.DecisionOf(dialrules.CheckPort(u.Origin(), connectTo))
	return visitDecisions{
		e.scopeDecision,
		rules,
		crawler.VisitHoursDecision(policy, opensAt, q.AsOf),
		crawler.CrawlDelayDecision(policy, delay, q.AsOf),
		port,
	}, nil
}

// RewriteURL returns the URL under which the crawl queues text, and the steps that lead to it. It
// fails if text is not a URL that decorum can visit, or if the store cannot be read.
func (q *Inspector) RewriteURL(ctx context.Context, text string) (u decorum.URL, steps []api.RewriteStep, err error) {
	if u, err = decorum.ParseURL(text); err != nil {
		return u, nil, err
	}
	steps = []api.RewriteStep{{Step: "canonical", URL: u.String(), Changes: describeCanonicalChanges(text, u)}}
	httpsURL, err := frontier.New(q.FrontierStore, frontier.Config{}).UpgradeIfOriginMovedToHTTPS(ctx, u)
	if err != nil {
		return u, nil, err
	}
	if httpsURL != u {
		u = httpsURL
		steps = append(steps, api.RewriteStep{Step: "https", URL: u.String(),
			Changes: []string{"the pages of its origin redirect to https"}})
	}
	u, changes := q.ParamCleaner.CleanURLAndExplain(u)
	step := api.RewriteStep{Step: "params", URL: u.String()}
	for _, c := range changes {
		step.Changes = append(step.Changes, strings.TrimSpace(c.Removed+" by "+c.Rule))
	}
	steps = append(steps, step)
	u, removedParams, err := q.Gate.ExplainURLCleaning(ctx, u)
	step = api.RewriteStep{Step: "clean_param", URL: u.String()}
	for _, t := range removedParams {
		step.Changes = append(step.Changes,
			fmt.Sprintf("%s by %s (line %d)", t.NameAndValue, plaintext.ReplaceControlChars(t.Rule), t.Line))
	}
	return u, append(steps, step), err
}

// describeCanonicalChanges says which parts of text have another form in u.
func describeCanonicalChanges(text string, u decorum.URL) (why []string) {
	if text == u.String() {
		return nil
	}
	trimmed := strings.TrimSpace(text)
	if trimmed != text {
		why = append(why, "blanks around it are dropped")
	}
	bare, fragment, _ := strings.Cut(trimmed, "#")
	if bare != trimmed {
		why = append(why, "the fragment #"+plaintext.ReplaceControlChars(fragment)+" is dropped")
	}
	path := max(0, strings.IndexByte(bare, ':')+len("://"))
	path = min(path+max(0, strings.IndexAny(bare[min(path, len(bare)):]+"/", "/?\\")), len(bare))
	if origin := bare[:path]; origin != u.Origin().String() {
		why = append(why, "the origin "+plaintext.ReplaceControlChars(origin)+" is written "+u.Origin().String())
	}
	if bare[path:] != u.PathAndQuery() {
		why = append(why, "the path "+plaintext.ReplaceControlChars(bare[path:])+" is written "+u.PathAndQuery())
	}
	return why
}

// visitTargets returns the URLs that the crawl checks when it leases the entry, which is u or an
// earlier form of it. If today's rules clean the stored form further, the crawl checks that form
// first, and then u, which takes its place. The last one is the URL that a visit requests.
func (q *Inspector) visitTargets(ctx context.Context, u decorum.URL, stored storage.Entry) ([]decorum.URL, error) {
	switch {
	case stored.UseUncleanedURL:
		return []decorum.URL{stored.UncleanedURL}, nil
	case stored.Source == storage.SourcePrerequisite: // these are visited in the form that names them
		return []decorum.URL{stored.URL}, nil
	}
	clean, _, err := q.Gate.ExplainURLCleaning(ctx, q.ParamCleaner.CleanURL(stored.URL))
	if clean == stored.URL {
		return []decorum.URL{stored.URL}, err
	}
	return []decorum.URL{stored.URL, u}, err
}

// explainScope checks the targets of an entry against the scope. A URL that the frontier does not
// hold must also leave the counts of its host and pattern within their limits.
func (q *Inspector) explainScope(ctx context.Context, u decorum.URL, entry storage.Entry,
	targets []decorum.URL, e *explainedURL) error {
	s := &e.Scope
	s.InScope = true
	if pattern, folded := frontier.URLPattern(u.PathAndQuery()); folded {
		s.CountedPattern = pattern
	}
	scope := q.Scope()
	if scope == nil {
		s.Detail = "not known: a seed file cannot be read"
		return nil
	}
	var refusal error
	err := q.loadClosedPatterns(ctx)
	for _, entry.URL = range targets {
		if refusal == nil {
			refusal = q.checkScope(entry)
		}
	}
	if err == nil && refusal == nil && e.FrontierState.State == HostUnknown {
		refusal, err = frontier.New(q.FrontierStore, frontier.Config{Scope: scope}).CheckLinkAgainstCountLimits(ctx, u)
	}
	if err == nil {
		e.scopeDecision, err = crawler.RefusalDecision(refusal)
	}
	if d := e.scopeDecision; d.Action != decorum.Proceed {
		s.InScope, s.Reason, s.Detail = false, frontier.RefusalReasonOf(d.Cause), engine.InnerErrorText(d.Cause)
	}
	return err
}

// explainRules explains u by the stored robots.txt and tdmrep.json of its origin.
func (q *Inspector) explainRules(ctx context.Context, u decorum.URL, r *api.ExplainedRules) error {
	o := u.Origin()
	file, fileErr := q.Gate.LastFetchSummary(ctx, o)
	postponed, postponedErr := q.Gate.PostponedReason(ctx, q.AsOf, o)
	tdmrep, tdmrepErr := crawler.ReadCachedTDMRep(ctx, q.FrontierStore, o)
	evaluate, evaluateErr := crawler.NewVerdictFunc(ctx, q.Gate, q.FrontierStore, o)
	err := cmp.Or(fileErr, postponedErr, tdmrepErr, evaluateErr)
	if err != nil {
		return err
	}
	r.Outcome, r.FetchedAt = file.Outcome.String(), file.FetchedAt
	if postponed != nil {
		r.OriginPostponedReason, r.OriginPostponedUntil = plaintext.ReplaceControlChars(postponed.Reason),
			postponed.Until
	}
	if evaluate == nil {
		return nil
	}
	v := evaluate(u)
	r.MayVisit, r.Reason = &v.Allowed, "no rule speaks of it"
	if v.Rule != "" {
		r.Reason = RuleText(v)
	}
	r.Explanation, err = q.Gate.Explain(ctx, o, u)
	r.UsageSignals = append(r.UsageSignals, tdmrep.UsageSignalsForURL(u)...)
	if r.Verdict = v; !v.DisallowedForMainRobot { // v may be the verdict of a preference about AI use
		r.IndexingVerdict = nil
	}
	return err
}

// HostUnknown is the state of a URL that the crawl has not met.
const HostUnknown = "unknown"

// findURLOrEarlierForm looks for u in the frontier, and then for the forms that the steps to u went
// through: the crawl may have queued one of these before it knew the rules that rewrite it, or
// before it found the origin on https.
func (q *Inspector) findURLOrEarlierForm(ctx context.Context, u decorum.URL, e *explainedURL) error {
	err := q.findExactURL(ctx, u, &e.urlFrontierState)
	for i := len(e.RewriteSteps) - 1; i >= 0 && err == nil && e.urlFrontierState.storedEntry == nil &&
		e.urlFrontierState.KnownAs == ""; i-- {
		var earlierURL decorum.URL
		if earlierURL, err = decorum.ParseURL(e.RewriteSteps[i].URL); err != nil || earlierURL == u {
			continue
		}
		var s urlFrontierState
		err = q.findExactURL(ctx, earlierURL, &s)
		switch isKnown := e.urlFrontierState.State != HostUnknown; {
		case err != nil || s.State == HostUnknown:
		case isKnown && (s.storedEntry == nil || !s.storedEntry.HTTPSUpgradeTried): // u itself was visited or given up
		case s.storedEntry == nil: // u itself is still to be met
			e.urlFrontierState.KnownAs = earlierURL.String()
		default:
			e.urlFrontierState, e.urlFrontierState.KnownAs = s, earlierURL.String()
		}
	}
	return err
}

// findExactURL looks for a URL in the frontier.
func (q *Inspector) findExactURL(ctx context.Context, u decorum.URL, s *urlFrontierState) error {
	s.State = HostUnknown
	known, err := q.FrontierStore.HasSeen(ctx, u)
	if err != nil || !known {
		return err
	}
	s.State = "done"
	for state, name := range StateNames {
		urlsAhead := 0
		err := q.FrontierStore.OriginURLsInState(ctx, u.Origin(), storage.EntryState(state),
			func(e storage.Entry, at time.Time) bool {
				if e.URL != u || !e.RobotsFor.IsZero() {
					urlsAhead++
					return true
				}
				s.State, s.URLsAhead, s.storedEntry, s.dueAt = name, urlsAhead, &e, at
				s.Entry = ToAPIFrontierURL(&e, storage.EntryState(state), at)
				return false
			})
		if err != nil || s.storedEntry != nil {
			return err
		}
	}
	return nil
}

// explainVisit says when the crawl visits the URL of e, and why. The target is the form of the URL
// that a visit requests: the frontier may hold another form, which the visit replaces.
func (q *Inspector) explainVisit(e *explainedURL, target decorum.URL) api.ExplainedNextVisit {
	// Answer for URLs that the crawl does not visit, or has not met.
	never := func(why string) api.ExplainedNextVisit { return api.ExplainedNextVisit{When: "never", Reason: why} }
	refusal := e.decisions.first(func(d decorum.Decision) bool { return d.Action == decorum.Refuse })
	switch u, _ := decorum.ParseURL(e.URL); {
	case u == u.Origin().RobotsURL():
		return never("it is not a page: the crawl fetches it before the first page of its origin")
	case refusal.Action == decorum.Refuse:
		return never(e.refusalText(refusal))
	case e.FrontierState.State == "done":
		return never("it was visited, or given up, and pages are not visited again")
	case e.FrontierState.State == StateNames[storage.StateParked]:
		return never("it is parked; a resumed crawl checks it again")
	case e.FrontierState.State == HostUnknown:
		return q.explainVisitOfUnknownURL(e)
	}
	// Name the stored form of the URL if the frontier holds another one.
	v := q.explainPendingVisit(e)
	switch storedAs := e.FrontierState.KnownAs; {
	case storedAs == "":
	case storedAs == target.String():
		v.Reason += "; it is visited as " + storedAs
	default:
		v.Reason += "; then " + e.URL + " takes the place of " + storedAs
	}
	return v
}

// refusalText says why the crawl does not visit the URL of e: d refuses the visit.
func (e *explainedURL) refusalText(d decorum.Decision) string {
	switch d.Reason {
	case decorum.ReasonScope:
		return "it is out of scope: " + e.Scope.Detail
	case decorum.ReasonRobots:
		return "robots.txt closes it, by " + e.Robots.Reason + "; the crawl checks it again when that changes"
	case decorum.ReasonTDMRep:
		return "tdmrep.json reserves it, by " + e.Robots.Reason + "; the crawl checks it again when that changes"
	}
	return plaintext.ReplaceControlChars(d.Err().Error())
}

// postponementText says why the crawl visits the URL of e only from d.Until on: d postpones the
// visit, or suspends its origin.
func (e *explainedURL) postponementText(d decorum.Decision) string {
	switch d.Reason {
	case decorum.ReasonVisitHours:
		return "the hours of visits begin then"
	case decorum.ReasonRobotsPending, decorum.ReasonRobotsUnreachable:
		return "its robots.txt is fetched again then: " + e.Robots.OriginPostponedReason
	case decorum.ReasonTDMRepUnreachable:
		return "its tdmrep.json is fetched again then, after a failure"
	}
	return plaintext.ReplaceControlChars(d.Err().Error())
}

// explainVisitOfUnknownURL is explainVisit for a URL that the frontier does not hold.
func (q *Inspector) explainVisitOfUnknownURL(e *explainedURL) api.ExplainedNextVisit {
	why := "the crawl does not know it: it is queued when a page, sitemap or redirect names it"
	if e.FrontierState.KnownAs != "" {
		why = "it was visited, or given up, as " + e.FrontierState.KnownAs +
			"; it is queued when a page, sitemap or redirect names it again"
	}
	if e.Robots.MayVisit == nil {
		why += "; robots.txt is fetched first"
	}
	return api.ExplainedNextVisit{When: "never", Reason: why}
}

// explainPendingVisit is explainVisit for a URL that is queued, or awaits its revisit.
func (q *Inspector) explainPendingVisit(e *explainedURL) api.ExplainedNextVisit {
	// A Crawl-delay that is too long has no end that the crawl knows: it only looks again every
	// minute.
	tooLong := e.decisions.first(func(d decorum.Decision) bool { return d.Reason == decorum.ReasonCrawlDelay })
	if tooLong.Action != decorum.Proceed {
		return api.ExplainedNextVisit{When: "never", Reason: fmt.Sprintf(
			"its Crawl-delay of %v is longer than max_crawl_delay, %v; the crawl checks it again when either changes",
			tooLong.Rest, time.Duration(tooLong.Limit))}
	}
	v := api.ExplainedNextVisit{When: "now", Reason: "its host is due"}
	if e.Robots.MayVisit == nil {
		v.Reason += ", and its robots.txt is fetched first"
	}
	// Of all that the visit waits for, the last to end sets the time.
	postpone := func(at time.Time, why string) {
		if at.After(q.AsOf) && at.After(v.NotBefore) {
			v = api.ExplainedNextVisit{When: "at", NotBefore: at.UTC(), Reason: why}
		}
	}
	if h := e.hostReport; h != nil {
		postpone(h.hostDueAt, fmt.Sprintf("its host rests for %v after its last visit", DelayText(h.RequiredDelay)))
		postpone(h.HeldUntil, "its origin is held"+PrefixIfSet(": ", h.HoldReason))
	}
	for _, d := range e.decisions {
		if d.Action != decorum.Proceed {
			postpone(d.Until, e.postponementText(d))
		}
	}
	delayReason := "it was put off after a failed visit"
	var freshUntil time.Time
	var freshBy string
	if e.FrontierState.State == StateNames[storage.StateAwaitingRevisit] {
		var freshness string
		freshUntil, freshBy, freshness = q.explainFreshness(e.urlFrontierState.storedEntry.VisitHistorySummary)
		delayReason = "it was visited, and its revisit is due then" + freshness
	}
	postpone(e.urlFrontierState.dueAt, delayReason)
	v.FreshUntil, v.FreshBy = freshUntil, freshBy
	if e.FrontierState.URLsAhead > 0 && e.FrontierState.State == StateNames[storage.StateQueued] {
		return q.explainVisitAfterOthers(e, v)
	}
	return v
}

// explainFreshness returns until when, by what and in which words the last answer of a page is fresh; zero
// values if it is not, or if freshness does not count. page may be nil.
func (q *Inspector) explainFreshness(page *storage.VisitHistorySummary) (until time.Time, by, text string) {
	policy, err := q.Project.RevisitPolicy()
	if page == nil || err != nil {
		return until, "", ""
	}
	until, delay := page.VisitedAt.Add(page.FreshFor).UTC(), policy.FreshnessDelay(*page)
	if delay == 0 || !until.After(q.AsOf) {
		return time.Time{}, "", ""
	}
	text = fmt.Sprintf("; its answer is fresh until %s by %s", FormatTime(until),
		httpcache.DescribeFreshBy(plaintext.ReplaceControlChars(page.FreshBy)))
	switch {
	case !page.SitemapLastmod.IsZero():
		text += ", but a sitemap lists it as modified since"
	case delay < page.FreshFor, page.FreshFor == policy.SitemapFreshnessLimit(): // FreshFor itself is bounded
		text += fmt.Sprintf(", which counts for %s at most", DelayText(api.Milliseconds(delay)))
	}
	return until, page.FreshBy, text
}

// explainVisitAfterOthers is explainPendingVisit for a URL that others of its origin precede. The
// first of these is visited as first says.
func (q *Inspector) explainVisitAfterOthers(e *explainedURL, first api.ExplainedNextVisit) api.ExplainedNextVisit {
	delay := time.Duration(0)
	if e.hostReport != nil {
		delay = time.Duration(max(e.hostReport.RequiredDelay, e.hostReport.CrawlDelay, e.hostReport.ConfiguredDelay,
			e.hostReport.LearnedDelay))
	}
	firstVisit := timecmp.Later(q.AsOf, first.NotBefore)
	return api.ExplainedNextVisit{
		When:      "after",
		NotBefore: firstVisit.Add(time.Duration(e.FrontierState.URLsAhead) * delay).UTC(),
		Reason: fmt.Sprintf("%d URLs of its origin go before it, at a visit in %v or more; from %s on: %s",
			e.FrontierState.URLsAhead, DelayText(api.Milliseconds(delay)), FormatTime(firstVisit), first.Reason),
	}
}
