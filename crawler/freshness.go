package crawler

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/extract"
	"github.com/decorum-crawler/decorum/crawler/httpcache"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage"
)

// applyCacheRules sets what s says about freshness and variants, by the header of v's answer and that of
// its request. It removes the validators of an answer that may not be stored (httpcache.Freshness.NoStore).
func applyCacheRules(s *frontier.PageObservation, v *Visit) {
	if !v.URL().Origin().IsHTTP() {
		return
	}
	header, status := v.Response.Header, v.Response.Status
	if status == http.StatusNotModified {
		// A 304 updates the headers of the answer that it confirms, and leaves those that it lacks.
		header, status = storedHeader(v.Lease.VisitHistorySummary), http.StatusOK
		maps.Copy(header, v.Response.Header)
	}
	f := httpcache.Private.Evaluate(httpcache.Response{Status: status, Header: header,
		RequestedAt: v.Start, ReceivedAt: v.End})
	if s.NoStore = f.NoStore; s.NoStore {
		s.ETag, s.LastModified = "", ""
	}
	s.VariantKey = variantKey(v)
	// An answer that stands for no later request (Vary: *) is fresh for none.
	if !httpcache.MatchesVariant(s.VariantKey, v.requestHeader) || f.IsHeuristic() && !mayEstimateFreshness(v) {
		return
	}
	if s.FreshFor = f.FreshFor(); s.FreshFor > 0 {
		s.FreshBy = f.By
	}
}

// mayEstimateFreshness reports whether v's answer, which states no expiration, may be fresh by a heuristic. Of an
// answer that a 304 confirms it is not known whether it said no-cache or max-age=0, unless it was fresh by the
// heuristic itself.
func mayEstimateFreshness(v *Visit) bool {
	before := v.Lease.VisitHistorySummary
	return v.Response.Status != http.StatusNotModified || before != nil && before.FreshBy == httpcache.ByHeuristic
}

// mayListPages reports whether v's answer may be a sitemap or a feed, by what led to it, by its content type, and for
// a seed by its content. A 304 has no content, and need not have a content type. It then counts as a page's if the last
// answer was fresh for longer than maxFreshness, because no sitemap or feed is.
func mayListPages(v *Visit, maxFreshness time.Duration) bool {
	contentType, before := v.Response.Header.Get("Content-Type"), v.Lease.VisitHistorySummary
	switch {
	case v.Kind == SitemapVisit, v.Kind == FeedVisit, v.isSeedSitemap, extract.IsFeedContentType(contentType):
		return true
	case v.Response.Status == http.StatusNotModified && (contentType == "" || isSeed(v.Lease)):
		return before == nil || before.FreshFor <= maxFreshness
	}
	return isSeed(v.Lease) && isSitemapType(contentType)
}

// storedHeader returns the header by which a page's last answer was fresh, as far as before has it. nil
// stands for no visit.
func storedHeader(before *storage.VisitHistorySummary) http.Header {
	h := http.Header{}
	switch {
	case before == nil:
	case before.FreshBy == httpcache.ByHeuristic:
		h["Last-Modified"] = []string{before.LastModified}
	case before.FreshBy == httpcache.ByExpires:
		h["Expires"] = []string{before.VisitedAt.Add(before.FreshFor).UTC().Format(http.TimeFormat)}
	case strings.Contains(before.FreshBy, "="):
		h["Cache-Control"] = []string{before.FreshBy}
	}
	return h
}

// variantKey returns the httpcache.VariantKey of v's page. All encodings of a body count as one
// variant, because fetchers decode them.
func variantKey(v *Visit) string {
	if before := v.Lease.VisitHistorySummary; before != nil &&
		v.Response.Status == http.StatusNotModified && v.Response.Header["Vary"] == nil {
		return before.VariantKey
	}
	return httpcache.VariantKey(v.Response.Header, v.requestHeader, "accept-encoding")
}
