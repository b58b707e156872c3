package collyfetch

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// FollowLink enqueues ref, a link of the page that a callback has in hand, as r.Visit(ref)
// does, at a small part of its cost: colly parses five URLs for each link before
// anybody can say whether it is known, which on a page of many links costs more than
// all else.
//
//	c.OnHTML("a[href]", func(e *colly.HTMLElement) { collyfetch.FollowLink(e.Request, e.Attr("href")) })
//
// Depth, Ctx and the collector's filters are those of Visit. Two things are not: ref
// is resolved by decorum.URL.Resolve, against the page's base element in callbacks of
// every kind; and callbacks for requests are not called when the link is queued, but
// only before its page is asked for.
//
// FollowLink returns a decorum.Error of Kind Invalid for what is no URL that is crawled;
// ErrMaxDepth, ErrForbiddenURL, ErrNoURLFiltersMatch or ErrForbiddenDomain of colly;
// an error if Ctx holds what cannot be kept; and nil for a URL that is known, and for a
// place within the page, such as #top: nothing is queued for it.
//
// Where r is of no page in hand, as with a collector that no crawl was built around,
// FollowLink is r.Visit.
func FollowLink(r *colly.Request, ref string) error {
	if page := callbackRunFromContext(r.Ctx); page != nil {
		return page.followLink(r, ref)
	}
	return r.Visit(ref)
}

// followLink queues a link of the page, which r is a request for.
func (r *callbackRun) followLink(page *colly.Request, ref string) error {
	u, err := r.baseURL().Resolve(ref)
	if err != nil {
		return err
	}
	if u == r.ticket.URL() && strings.HasPrefix(strings.TrimSpace(ref), "#") {
		return nil // by GET it may be another page
	}
	depth := page.Depth + 1
	if err := checkURLAgainstFilters(r.joinedCollector.Collector, u, depth); err != nil {
		return err
	}
	metadata, err := encodeRequestMetadata(r.joinedCollector.name, u, page.Ctx, nil)
	if err != nil {
		return err
	}
	return r.collector.enqueueLink(r, crawler.LinkToVisit{URL: u, CallbackData: metadata}, depth)
}

// baseURL returns what links of the page are relative to.
func (r *callbackRun) baseURL() decorum.URL {
	r.mu.Lock()
	v := r.visit
	r.mu.Unlock()
	if v != nil {
		if doc := v.PageScanResult(); doc != nil {
			return doc.BaseURL
		}
	}
	return r.ticket.URL()
}

// checkURLAgainstFilters returns why m does not visit u at that depth, nil if it does. It asks what
// colly asks, in its order.
func checkURLAgainstFilters(m *colly.Collector, u decorum.URL, depth int) error {
	matches := func(re *regexp.Regexp) bool { return re.MatchString(u.String()) }
	host := strings.Trim(u.Origin().Host(), "[]")
	switch {
	case m.MaxDepth > 0 && m.MaxDepth < depth:
		return colly.ErrMaxDepth
	case slices.ContainsFunc(m.DisallowedURLFilters, matches):
		return colly.ErrForbiddenURL
	case len(m.URLFilters) > 0 && !slices.ContainsFunc(m.URLFilters, matches):
		return colly.ErrNoURLFiltersMatch
	case slices.Contains(m.DisallowedDomains, host), len(m.AllowedDomains) > 0 && !slices.Contains(m.AllowedDomains, host):
		return colly.ErrForbiddenDomain
	}
	return nil
}
