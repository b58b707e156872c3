package collyfetch

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// FollowLink queues ref, a link on the page that the calling callback handles. It does what
// r.Visit(ref) does at a small part of its cost: colly parses five URLs for each link before it is
// known whether the URL is new, which takes most of the time on a page of many links.
//
//	c.OnHTML("a[href]", func(e *colly.HTMLElement) { collyfetch.FollowLink(e.Request, e.Attr("href")) })
//
// Depth, Ctx and the collector's filters apply as in Visit. Two things differ: decorum.URL.Resolve
// resolves ref, against the page's base element in callbacks of every kind; and callbacks for
// requests are not called when the link is queued, but only before its page is requested.
//
// FollowLink returns a decorum.Error of Kind Invalid for an invalid URL or one that is not crawled;
// ErrMaxDepth, ErrForbiddenURL, ErrNoURLFiltersMatch or ErrForbiddenDomain of colly; and an error if
// Ctx has a value that cannot be kept. It returns nil and queues nothing for a known URL, and for a
// place within the page, such as #top.
//
// If r does not belong to a page of a crawl, as with a collector that was never wrapped, FollowLink
// calls r.Visit.
func FollowLink(r *colly.Request, ref string) error {
	if page := callbackRunFromContext(r.Ctx); page != nil {
		return page.followLink(r, ref)
	}
	return r.Visit(ref)
}

// followLink queues ref as a link of the page that page requested.
func (r *callbackRun) followLink(page *colly.Request, ref string) error {
	u, err := r.baseURL().Resolve(ref)
	if err != nil {
		return err
	}
	if u == r.ticket.URL() && strings.HasPrefix(strings.TrimSpace(ref), "#") {
		return nil // a place within the page; if a POST led here, a GET might be another page
	}
	depth := page.Depth + 1
	if err := checkURLAgainstFilters(r.joinedCollector.Collector, u, depth); err != nil {
		return err
	}
	metadata, err := encodeRequestMetadata(r.joinedCollector.name, u, page.Ctx, nil)
	if err != nil {
		return err
	}
	return r.collector.enqueueLink(r, crawler.LinkToVisit{URL: u, CallbackData: metadata}, depth, false)
}

// baseURL returns the URL that links on the page are relative to: the one of its base element, or the
// page's own before Handle.
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

// checkURLAgainstFilters returns colly's error if m does not visit u at that depth. It checks what
// colly checks, in colly's order.
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
	case slices.Contains(m.DisallowedDomains, host),
		len(m.AllowedDomains) > 0 && !slices.Contains(m.AllowedDomains, host):
		return colly.ErrForbiddenDomain
	}
	return nil
}
