package crawler

import (
	"context"
	"net/http"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// discoverRedirectAndNoteHTTPS discovers where v redirects to, and notes whether its origin sends
// everybody to https. A loop ends here: where it closes, it leads to a URL that
// is not new.
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
	added, err := p.frontier.Discover(ctx, entry)
	p.counters.count(func(s *Stats) {
		s.Redirects++
		s.RedirectsToNewURLs += int64(added)
	})
	return err
}

// RedirectTarget returns where an answer leads to and how that is to be asked for,
// and false if it leads nowhere (RFC 9110, section 15.4): HEAD and OPTIONS stay what
// they are; of any other method 301, 302 and 303 make a GET, while 307 and 308 ask
// for the same request. One with a body, or that is not safe, is made within the same
// origin alone: a body was for who was asked first.
func RedirectTarget(original *storage.NonGETRequest, res *decorum.Response) (to decorum.URL, request *storage.NonGETRequest, ok bool) {
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

// redirectEntry returns the entry of a redirect's target: one redirect more, and no
// deeper than what led there, which it stands for.
func redirectEntry(v *Visit, to decorum.URL) storage.Entry {
	e := storage.Entry{URL: to, Source: storage.SourceRedirect, PriorityClass: v.Lease.PriorityClass, PriorityRank: v.Lease.PriorityRank,
		Depth: v.Lease.Depth, Redirects: v.Lease.Redirects + 1,
		Referrer: v.URL().String(), CallbackData: v.Lease.CallbackData}
	if isAnnouncedFeed(v.Lease) {
		e.Source = storage.SourceFeed
	}
	return e
}

// recordHTTPSEvidence tells the frontier whether a page on http redirects to its twin on
// https, and whether one on https leads back or cannot be reached there. Other
// failures say nothing of the origin, and no more does a page that is nowhere.
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

// recordIfHTTPSUnreachable tells f where v did not reach a server on https.
func recordIfHTTPSUnreachable(ctx context.Context, f *frontier.Frontier, v *Visit) error {
	if u := v.URL(); isUnreachable(v) && u.Origin().Scheme() == "https" {
		return f.RecordHTTPSEvidence(ctx, u, false, true)
	}
	return nil
}

// requeueOnHTTP queues the page of v, which is not on https, where it was found: on http.
// Its twin is not taken for it again, so that it is asked for once on each. What was
// there before is only gone. How http answers says whether the origin is on https.
func (p *pageHandler) requeueOnHTTP(ctx context.Context, v *Visit) error {
	e := v.Lease.Entry
	if !e.HTTPSUpgradeTried || e.VisitHistorySummary != nil {
		return nil
	}
	if !e.UncleanedURL.IsZero() {
		e.URL = e.UncleanedURL
	}
	httpURL, ok := frontier.HTTPVariant(e.URL)
	if !ok { // it is on http
		return nil
	}
	e.URL, e.UncleanedURL, e.UseUncleanedURL, e.FailedAttempts = httpURL, decorum.URL{}, false, 0
	return p.frontier.AddReplacement(ctx, e)
}

// urlToVisit returns what the visit of e is to: its URL, unless nothing was there,
// and then what it was first found as.
func urlToVisit(e storage.Entry) decorum.URL {
	if e.UseUncleanedURL {
		return e.UncleanedURL
	}
	return e.URL
}

// A urlCleaner takes off URLs what the project's rules and the Clean-param lines of their origins say.
type urlCleaner struct {
	gate     *gate.Gate
	frontier *frontier.Frontier
}

// cleanURLToVisit returns what the visit of e will be to by the rules known now: where they
// clean it further, that is another entry in its place.
func (n urlCleaner) cleanURLToVisit(e storage.Entry) decorum.URL {
	if e.UseUncleanedURL || e.Source == storage.SourcePrerequisite || e.Request != nil {
		return urlToVisit(e)
	}
	return n.cleanURL(e.URL)
}

// uncleanedFallback returns what to visit where nothing is at the clean URL that v went
// to, or only a redirect that puts a parameter or the id of a session back: the
// URL that it was cleaned from, which stands for all others (CLEAN-05, CLEAN-23),
// or, if it was found clean, where the redirect leads.
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

// cleanParamReplacement returns the page that l is by the Clean-param rules of its origin, and
// false if it is that page already. They may not have been known when l was
// discovered. The gate, asked about l, has just answered cl or d: only where
// it has judged l are the rules known that hold now. The crawl's own files
// are as the site's robots.txt names them.
func (n urlCleaner) cleanParamReplacement(l storage.Lease, cl gate.Clearance, d decorum.Decision) (decorum.URL, bool) {
	judged := d.Reason == decorum.ReasonRobots || d.Reason == decorum.ReasonTDMRep || d.Action == decorum.Proceed && !cl.IsForRobots()
	clean := n.cleanURLToVisit(l.Entry)
	return clean, judged && clean != urlToVisit(l.Entry)
}

// cleanURL returns u without what the project's rules and its origin's Clean-param
// take off.
func (n urlCleaner) cleanURL(u decorum.URL) decorum.URL {
	return n.gate.CleanURL(n.frontier.ParamCleaner().CleanURL(u))
}

// requeueAsCleanURL queues clean in the place of l, which is then given up without a
// visit: clean is the page that is known, requested and judged (CLEAN-23,
// CLEAN-24).
func (n urlCleaner) requeueAsCleanURL(ctx context.Context, l storage.Lease, clean decorum.URL) (leaseOutcome, error) {
	e := l.Entry
	e.URL, e.FailedAttempts, e.VisitHistorySummary = clean, 0, nil // what was left there says nothing of another URL
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
