package crawler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// A Fetcher gets one URL, as Ticket.Request says. It calls Ticket.Redeem before it
// sends anything, Ticket.ClaimServerAddr when it has a connection, and Ticket.RecordSend right
// before the first byte leaves, and sends nothing if one of them returns an error.
// It follows no redirects, and returns an answer of any status as a Response; an
// error, as NewFetchError makes it, means that no whole answer came.
type Fetcher interface {
	Fetch(context.Context, Ticket) (*decorum.Response, error)
}

// A VisitResourceReleaser is a Fetcher that keeps something for the handler of a page. It is
// told, by the ticket, when the visit is over and its handler has returned, if
// one was called at all.
type VisitResourceReleaser interface {
	ReleaseVisitResources(Ticket)
}

// MultiSchemeFetcher is the Fetcher of a crawl that speaks several protocols: each visit
// is made by the one that is registered for the scheme of its URL (LOC-15). A
// visit of a scheme that has none is refused with an error of Kind Invalid.
type MultiSchemeFetcher map[string]Fetcher

// Fetch implements Fetcher.
func (b MultiSchemeFetcher) Fetch(ctx context.Context, t Ticket) (*decorum.Response, error) {
	if t.URL().IsZero() {
		return nil, t.Redeem("") // refused: it is for no URL
	}
	scheme := t.URL().Origin().Scheme()
	if f := b[scheme]; f != nil {
		return f.Fetch(ctx, t)
	}
	return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid, Err: fmt.Errorf("%s is not fetched", scheme)}
}

// ReleaseVisitResources implements VisitResourceReleaser, for those of the fetchers that are one.
func (b MultiSchemeFetcher) ReleaseVisitResources(t Ticket) {
	if f, ok := b[t.URL().Origin().Scheme()].(VisitResourceReleaser); ok {
		f.ReleaseVisitResources(t)
	}
}

// NewFetchError returns the error of a Fetcher that got no whole answer, because of
// cause. Its Kind is that of cause if we refused the request ourselves
// (Unticketed, Forbidden, NotDue) or if the visit failed on this machine (Local),
// else Unreachable; but InDoubt if the request must not be sent twice, and was sent.
//
// A visit whose error is of Kind Local is not charged to its host: it does not count as
// an attempt at the page, a failure of the host or an outage of its robots.txt. The URL
// goes back to its queue.
func NewFetchError(t Ticket, cause error) error {
	kind := decorum.Unreachable
	ours := []decorum.ErrorKind{
		decorum.InDoubt, decorum.Unticketed, decorum.Forbidden, decorum.NotDue, decorum.LocalFailure,
	}
	if i := slices.IndexFunc(ours, func(k decorum.ErrorKind) bool { return errors.Is(cause, k) }); i >= 0 {
		kind = ours[i]
	}
	if t.isUnsafeSendRecorded() {
		kind = decorum.InDoubt
	}
	return &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: kind, Err: cause}
}

// robotsReadLimit is how much of a robots.txt is read: the 500 KiB that count
// (FMT-08), and one byte that shows there is more.
const robotsReadLimit = 512_000 + 1

// BodyLimit returns how many bytes of a body are read, where pageLimit are of a page's.
// Of a robots.txt at least 512,000 bytes are, of a sitemap Settings.MaxSitemapBody, of a
// tdmrep.json 64 KiB at most; and one more, which shows that there are more.
func (t Ticket) BodyLimit(pageLimit int64) int64 {
	switch t.Kind() {
	case RobotsVisit, RobotsRedirectVisit:
		return max(pageLimit, robotsReadLimit)
	case TDMRepVisit:
		return aiuse.MaxTDMRepBytes + 1
	case SitemapVisit:
		return t.data.crawler.Settings.MaxSitemapBody + 1
	}
	return pageLimit
}

// WantsContentType reports whether a body of this content type is read, where types are
// those of pages that are; none: all. robots.txt, sitemaps and feeds are always
// read, and so is what has no type.
func (t Ticket) WantsContentType(contentType string, types []string) bool {
	if len(types) == 0 || contentType == "" || !t.Kind().IsPage() || t.wantsFeedType(contentType) {
		return true
	}
	media, _, _ := strings.Cut(contentType, ";")
	return slices.Contains(types, strings.ToLower(strings.TrimSpace(media)))
}
