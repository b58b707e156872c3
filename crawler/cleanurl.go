package crawler

import (
	"context"
	"errors"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// urlToVisit returns what the visit of e is to: its URL, unless nothing was there,
// and then what it was first found as.
func urlToVisit(e storage.Entry) decorum.URL {
	if e.UseUncleanedURL {
		return e.UncleanedURL
	}
	return e.URL
}

// cleanURLToVisit returns what the visit of e will be to by the rules known now: where they
// clean it further, that is another entry in its place.
func (c *Crawler) cleanURLToVisit(e storage.Entry) decorum.URL {
	if e.UseUncleanedURL || e.Source == storage.SourcePrerequisite || e.Request != nil {
		return urlToVisit(e)
	}
	return c.cleanURL(e.URL)
}

// uncleanedFallback returns what to visit where nothing is at the clean URL that v went
// to, or only a redirect that puts a parameter or the id of a session back: the
// URL that it was cleaned from, which stands for all others (CLEAN-05, CLEAN-23),
// or, if it was found clean, where the redirect leads.
func (c *Crawler) uncleanedFallback(v *Visit) (found decorum.URL, ok bool) {
	found = v.Lease.UncleanedURL
	if v.Lease.UseUncleanedURL || v.Response == nil || v.Lease.Request != nil {
		return found, false
	}
	if isNotFound(v.Status()) {
		return found, !found.IsZero()
	}
	to, redirects := v.Response.Location()
	if !redirects || to == v.URL() || c.cleanURL(to) != v.URL() {
		return found, false
	}
	if found.IsZero() {
		found = to
	}
	return found, true
}

// cleanParamReplacement returns the page that l is by the Clean-param rules of its origin, and
// false if it is that page already. They may not have been known when l was
// discovered. The gate, asked about l, has just answered cl or err: only where
// it has judged l are the rules known that hold now. The crawl's own errands
// are as the site's robots.txt names them.
func (c *Crawler) cleanParamReplacement(l storage.Lease, cl gate.Clearance, err error) (decorum.URL, bool) {
	judged := errors.Is(err, decorum.Disallowed) || err == nil && !cl.IsForRobots()
	clean := c.cleanURLToVisit(l.Entry)
	return clean, judged && clean != urlToVisit(l.Entry)
}

// cleanURL returns u without what the project's rules and its origin's Clean-param
// take off.
func (c *Crawler) cleanURL(u decorum.URL) decorum.URL {
	return c.Gate.CleanURL(c.Frontier.ParamCleaner().CleanURL(u))
}

// requeueAsCleanURL queues clean in the place of l, which is then given up without a
// visit: clean is the page that is known, requested and judged (CLEAN-23,
// CLEAN-24).
func (c *Crawler) requeueAsCleanURL(ctx context.Context, l storage.Lease, clean decorum.URL) (storage.Ack, error) {
	e := l.Entry
	e.URL, e.FailedAttempts, e.VisitHistorySummary = clean, 0, nil // what was left there says nothing of another URL
	if e.Source == storage.SourceRevisit {
		e.Source = storage.SourceLink
	}
	if e.UncleanedURL.IsZero() {
		e.UncleanedURL = l.URL
	}
	if err := c.Frontier.AddReplacement(ctx, e); err != nil {
		return storage.Ack{Outcome: storage.Requeue}, err
	}
	return storage.Ack{Outcome: storage.Drop}, nil
}
