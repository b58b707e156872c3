package crawler

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// discoverRedirectAndNoteHTTPS queues the target of v's redirect, and records whether its origin
// redirects to https. A redirect loop ends here, because its last target is not new.
func (p *pageHandler) discoverRedirectAndNoteHTTPS(ctx context.Context, v *Visit) error {
	if err := p.recordHTTPSEvidence(ctx, v); err != nil || v.Response == nil {
		return err
	}
	to, request, ok := RedirectTarget(v.Lease.Request, v.Response)
	if !ok {
		return nil
	}
	entry := redirectEntry(v, to)
	entry.Request = request
	added, err := p.frontier.DiscoverRedirect(ctx, entry)
	p.counters.count(func(s *Stats) {
		s.Redirects++
		s.RedirectsToNewURLs += int64(added)
	})
	return err
}

// pageFoundNoteKey is the note of a crawl in which a page was found. Its value is "1".
const pageFoundNoteKey = "page_found"

// HasFoundPage reports whether the crawl with these notes has ever found a page: a visit was answered with
// 2xx or 304.
func HasFoundPage(ctx context.Context, notes storage.Notes) (bool, error) {
	note, err := notes.ReadNote(ctx, decorum.Origin{}, pageFoundNoteKey)
	return len(note) > 0, err
}

// maxSeedTargetLogs limits the lines of log about redirects of seeds in one run.
const maxSeedTargetLogs = 100

// seedTargets is what a run knows of the pages that its seeds lead to.
type seedTargets struct {
	hasFoundPage atomic.Bool  // the note of pageFoundNoteKey is set
	logCount     atomic.Int64 // redirects of seeds that were logged, or would have been
}

// recordThatPageExists notes that the crawl has found a page, if v did. If redirects of a seed led to v
// from another site, the site of v joins the scope: a seed at example.com stands for www.example.com, too.
func (p *pageHandler) recordThatPageExists(ctx context.Context, v *Visit) error {
	if !v.OK() && v.Status() != http.StatusNotModified {
		return nil
	}
	if !p.seedTargets.hasFoundPage.Load() {
		err := p.frontier.Store().SetNote(ctx, decorum.Origin{}, pageFoundNoteKey, []byte("1"))
		if err != nil {
			return err
		}
		p.seedTargets.hasFoundPage.Store(true)
	}
	extended, err := p.frontier.ExtendScopeToSeedTarget(ctx, v.Lease.Entry)
	if !extended {
		return err
	}
	switch n := p.seedTargets.logCount.Add(1); {
	case n <= maxSeedTargetLogs:
		p.log.Info("a seed redirects to another site, which belongs to the crawl from now on",
			"setting", "scope.seed_redirects", "seed", v.Lease.SeedOrigin, "to", v.URL())
	case n == maxSeedTargetLogs+1:
		p.log.Info("more seeds redirect to other sites; they are not logged")
	}
	return nil
}

// RedirectTarget returns the target of an answer's redirect and the request to make there, and
// false if the answer does not redirect (RFC 9110, section 15.4). HEAD and OPTIONS keep their
// method. Every other method becomes GET after 301, 302 and 303, and stays after 307 and 308. A
// request that is unsafe or has a body is only repeated on the same origin, because the body was
// meant for that origin.
func RedirectTarget(original *storage.NonGETRequest,
	res *decorum.Response) (to decorum.URL, request *storage.NonGETRequest, ok bool) {
	to, ok = res.Location()
	switch {
	case original == nil:
	case original.IsSafe():
		ok = ok && to.Origin().IsHTTP() && (len(original.Body) == 0 || to.Origin() == res.URL.Origin())
	case res.Status == http.StatusTemporaryRedirect, res.Status == http.StatusPermanentRedirect:
		ok = ok && to.Origin() == res.URL.Origin()
	default:
		original = nil
	}
	return to, original, ok
}

// redirectEntry returns the entry of a redirect's target. It counts one more redirect, but has the
// depth of the redirecting URL, which it replaces: that of a seed stands for the seed.
func redirectEntry(v *Visit, to decorum.URL) storage.Entry {
	e := storage.Entry{URL: to, Source: storage.SourceRedirect,
		PriorityClass: v.Lease.PriorityClass, PriorityRank: v.Lease.PriorityRank,
		Depth: v.Lease.Depth, Redirects: v.Lease.Redirects + 1,
		SeedOrigin: v.Lease.SeedOrigin,
		Referrer:   v.URL().String(), CallbackData: v.Lease.CallbackData}
	switch {
	case isFeed(v.Lease):
		e.Source = storage.SourceFeed
	case v.Lease.Source == storage.SourceResource:
		e.Source = storage.SourceResource // it stays one
	}
	return e
}

// recordHTTPSEvidence tells the frontier whether a page on http redirects to the same URL on https,
// and whether one on https redirects back or is unreachable. Other failures say nothing about the
// origin, nor does a page that exists on neither.
func (p *pageHandler) recordHTTPSEvidence(ctx context.Context, v *Visit) error {
	u, status := v.URL(), v.Status()
	switch {
	case v.Response == nil:
		return recordIfHTTPSUnreachable(ctx, p.frontier, v)
	case isTransientStatus(status), status == http.StatusNotModified, isNotFound(status) && v.Lease.HTTPSUpgradeTried:
		return nil
	}
	to, _ := v.Response.Location()
	httpsURL, isHTTP := frontier.HTTPSVariant(u)
	backURL, leadsBack := frontier.HTTPSVariant(to)
	return p.frontier.RecordHTTPSEvidence(ctx, u, isHTTP && to == httpsURL, leadsBack && backURL == u)
}

// recordIfHTTPSUnreachable tells f if v did not reach a server on https.
func recordIfHTTPSUnreachable(ctx context.Context, f *frontier.Frontier, v *Visit) error {
	if u := v.URL(); isUnreachable(v) && u.Origin().Scheme() == "https" {
		return f.RecordHTTPSEvidence(ctx, u, false, true)
	}
	return nil
}

// requeueTwinOnHTTP queues e, a URL that a robots.txt on https disallows, on http, where it was found, if the
// host answers alike on both: each scheme has rules of its own. If http redirects to https, no page is there.
func (p *pageHandler) requeueTwinOnHTTP(ctx context.Context, e storage.Entry) error {
	if !e.HTTPSUpgradeTried {
		return nil
	}
	if areTwins, err := p.frontier.AnswersAlikeOnHTTPS(ctx, e.URL); err != nil || !areTwins {
		return err
	}
	return p.requeueOnHTTP(ctx, e)
}

// requeueOnHTTP queues e on http, where it was found, because https does not have it.
// The frontier does not replace that URL again, so each of the two is requested once. A page that
// was visited on https before is merely gone. The answer on http will show whether the origin is on
// https.
func (p *pageHandler) requeueOnHTTP(ctx context.Context, e storage.Entry) error {
	if !e.HTTPSUpgradeTried || e.VisitHistorySummary != nil {
		return nil
	}
	if !e.UncleanedURL.IsZero() {
		e.URL = e.UncleanedURL
	}
	httpURL, ok := frontier.HTTPVariant(e.URL)
	if !ok { // it is on http already
		return nil
	}
	e.URL, e.UncleanedURL, e.UseUncleanedURL, e.FailedAttempts = httpURL, decorum.URL{}, false, 0
	return p.frontier.AddReplacement(ctx, e)
}

// urlToVisit returns the URL that a visit of e goes to: its clean URL, or the one it was found as
// if the clean URL has no page.
func urlToVisit(e storage.Entry) decorum.URL {
	if e.UseUncleanedURL {
		return e.UncleanedURL
	}
	return e.URL
}

// A urlCleaner removes from URLs what the project's rules and their origins' Clean-param lines
// name.
type urlCleaner struct {
	gate     *gate.Gate
	frontier *frontier.Frontier
}

// cleanURLToVisit returns the URL that a visit of e will go to by the rules known now. If it
// differs from the URL of e, another entry replaces e.
func (n urlCleaner) cleanURLToVisit(e storage.Entry) decorum.URL {
	if e.UseUncleanedURL || e.Source == storage.SourcePrerequisite || e.Request != nil {
		return urlToVisit(e)
	}
	return n.cleanURL(e.URL)
}

// uncleanedFallback returns the URL to visit instead of the clean URL of v, if that does not exist
// or redirects to a URL with the removed parameter or session ID. It is the URL that the clean one
// was made from, which stands for all others (CLEAN-05, CLEAN-23), or, if the URL was found clean,
// the target of the redirect.
func (p *pageHandler) uncleanedFallback(v *Visit) (found decorum.URL, ok bool) {
	found = v.Lease.UncleanedURL
	if v.Lease.UseUncleanedURL || v.Response == nil || v.Lease.Request != nil {
		return found, false
	}
	if isNotFound(v.Status()) {
		return found, !found.IsZero()
	}
	to, redirects := v.Response.Location()
	if !redirects || to == v.URL() || p.cleaner.cleanURL(to) != v.URL() {
		return found, false
	}
	if found.IsZero() {
		found = to
	}
	return found, true
}

// cleanParamReplacement returns the URL that the Clean-param rules of l's origin turn l into, and
// false if l has it already. The rules may have been unknown when l was discovered. cl and d are
// the gate's answer about l: only if it evaluated l are the rules in force known. The crawl's own
// prerequisite files keep the URLs that robots.txt gives them.
func (n urlCleaner) cleanParamReplacement(l storage.Lease, cl gate.Clearance, d decorum.Decision) (decorum.URL, bool) {
	judged := d.Reason == decorum.ReasonRobots || d.Reason == decorum.ReasonTDMRep ||
		d.Action == decorum.Proceed && !cl.IsForRobots()
	clean := n.cleanURLToVisit(l.Entry)
	return clean, judged && clean != urlToVisit(l.Entry)
}

// cleanURL returns u without what the project's rules and its origin's Clean-param lines remove.
func (n urlCleaner) cleanURL(u decorum.URL) decorum.URL {
	return n.gate.CleanURL(n.frontier.ParamCleaner().CleanURL(u))
}

// requeueAsCleanURL queues clean in place of l, and drops l without a visit: from now on clean is
// the page that is known, requested and checked (CLEAN-23, CLEAN-24).
func (n urlCleaner) requeueAsCleanURL(ctx context.Context, l storage.Lease, clean decorum.URL) (leaseOutcome, error) {
	e := l.Entry
	// The history belongs to the URL that is dropped.
	e.URL, e.FailedAttempts, e.VisitHistorySummary = clean, 0, nil
	if e.Source == storage.SourceRevisit {
		e.Source = storage.SourceLink
	}
	if e.UncleanedURL.IsZero() {
		e.UncleanedURL = l.URL
	}
	if err := n.frontier.AddReplacement(ctx, e); err != nil {
		return leaseOutcome{outcome: storage.Requeue}, err
	}
	return leaseOutcome{outcome: storage.Drop}, nil
}
