package crawler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/storage"
)

// A Fetcher makes the request of a Ticket, as Ticket.Request describes it. Before it sends anything
// it calls Ticket.Redeem; when it has a connection, Ticket.ClaimServerAddr; right before the first
// byte leaves, Ticket.RecordSend. If one of them returns an error, it sends nothing. It follows no
// redirects. It returns an answer of any status as a Response. An error, made by NewFetchError,
// means that no whole answer came.
type Fetcher interface {
	Fetch(context.Context, Ticket) (*decorum.Response, error)
}

// A VisitResourceReleaser is a Fetcher that keeps resources for the handler of a page. The crawl
// calls ReleaseVisitResources when the visit is over and its handler, if it was called, has
// returned.
type VisitResourceReleaser interface {
	ReleaseVisitResources(Ticket)
}

// A ConnectionKeeper is a Fetcher that keeps connections open between visits. The crawl says when each
// host is visited next, so that no connection stays open that will not be used.
type ConnectionKeeper interface {
	// SetNextVisit says that the next visit to host begins at due or later. The zero time means that the
	// crawl has no URL of the host, or that a brake stops it. The crawl calls it after each lease that it
	// has acked.
	SetNextVisit(host string, due time.Time)
	// CloseConnections closes the connections to the hosts for which wants returns true. The crawl calls it
	// when a brake has stopped hosts. A connection in use need not be closed: its visit is cancelled.
	CloseConnections(wants func(host string) bool)
}

// A ProductTokenReporter is a Fetcher whose requests name the crawl. Crawler.Validate compares the
// product token of its User-Agent with that of the Gate's Agent.
type ProductTokenReporter interface {
	ProductToken() string
}

// checkProductToken returns an error unless f, or each of its Fetchers, names the crawl product.
func checkProductToken(f Fetcher, product string) error {
	switch f := f.(type) {
	case ProductTokenReporter:
		if !strings.EqualFold(f.ProductToken(), product) {
			return fmt.Errorf("the User-Agent of the Fetcher names %q, and the Agent of the Gate is %q",
				f.ProductToken(), product)
		}
	case MultiSchemeFetcher:
		for _, scheme := range slices.Sorted(maps.Keys(f)) {
			if err := checkProductToken(f[scheme], product); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckProductToken returns an error of Kind Unticketed if the ticket permits a request of a crawl
// with another product token. Only an OnDemandCrawl may fetch the robots.txt of a site for another
// crawler. A Fetcher calls it with the product token that it sends, and returns its
// error, which ends the run.
func (t Ticket) CheckProductToken(product string) error {
	if t.data == nil || t.data.crawler == nil || t.data.crawler.evaluatesForOthers && t.Kind().IsRobots() {
		return nil
	}
	if agent := t.data.crawler.Gate.Agent().Token(); !strings.EqualFold(product, agent) {
		return &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Unticketed,
			Err: fmt.Errorf("%w: the rules are those for %q, and the User-Agent names %q", errOtherProductToken,
				agent, product)}
	}
	return nil
}

// errOtherProductToken is why CheckProductToken refuses a request.
var errOtherProductToken = errors.New("the Fetcher belongs to another crawl")

// MultiSchemeFetcher is the Fetcher of a crawl that speaks several protocols. It passes each visit
// to the Fetcher registered for the scheme of its URL (LOC-15). For a scheme without a Fetcher it
// returns an error of Kind Invalid.
type MultiSchemeFetcher map[string]Fetcher

// Fetch implements Fetcher.
func (b MultiSchemeFetcher) Fetch(ctx context.Context, t Ticket) (*decorum.Response, error) {
	if t.URL().IsZero() {
		return nil, t.Redeem("") // Redeem refuses the zero Ticket
	}
	scheme := t.URL().Origin().Scheme()
	if f := b[scheme]; f != nil {
		return f.Fetch(ctx, t)
	}
	return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid,
		Err: fmt.Errorf("%s is not fetched", scheme)}
}

// ReleaseVisitResources implements VisitResourceReleaser: it calls the scheme's Fetcher, if that is
// one.
func (b MultiSchemeFetcher) ReleaseVisitResources(t Ticket) {
	if f, ok := b[t.URL().Origin().Scheme()].(VisitResourceReleaser); ok {
		f.ReleaseVisitResources(t)
	}
}

// SetNextVisit implements ConnectionKeeper: it calls each Fetcher that is one.
func (b MultiSchemeFetcher) SetNextVisit(host string, due time.Time) {
	b.forEachConnectionKeeper(func(k ConnectionKeeper) { k.SetNextVisit(host, due) })
}

// CloseConnections implements ConnectionKeeper: it calls each Fetcher that is one.
func (b MultiSchemeFetcher) CloseConnections(wants func(host string) bool) {
	b.forEachConnectionKeeper(func(k ConnectionKeeper) { k.CloseConnections(wants) })
}

// forEachConnectionKeeper calls f with each Fetcher that is a ConnectionKeeper. A Fetcher of several
// schemes is called several times, which has no further effect.
func (b MultiSchemeFetcher) forEachConnectionKeeper(f func(ConnectionKeeper)) {
	for _, fetcher := range b {
		if k, ok := fetcher.(ConnectionKeeper); ok {
			f(k)
		}
	}
}

// closeStoppedConns makes a Fetcher that keeps connections close those to hosts that a brake stops.
func (c *Crawler) closeStoppedConns() {
	if keeper, ok := c.Fetcher.(ConnectionKeeper); ok {
		now := c.now()
		keeper.CloseConnections(func(host string) bool {
			return c.Brakes.CheckStopped(host, now).Action != decorum.Proceed
		})
	}
}

// announceNextVisit tells a Fetcher that keeps connections when the host of a lease is visited next, by
// the store or, if that does not know, by the host's state after the visit; nil if none was made. A host
// that a brake stops is not visited.
func (c *Crawler) announceNextVisit(ctx context.Context, host string, state *storage.HostState) {
	keeper, ok := c.Fetcher.(ConnectionKeeper)
	if !ok {
		return
	}
	if c.Brakes.CheckStopped(host, c.now()).Action != decorum.Proceed {
		keeper.SetNextVisit(host, time.Time{})
		return
	}
	due, known := c.Frontier.NextURLDue(ctx, host)
	if !known && state != nil {
		due, known = state.Due, true
	}
	if known {
		keeper.SetNextVisit(host, due)
	}
}

// NewFetchError returns the error of a Fetcher that got no whole answer because of cause. Its Kind
// is that of cause if this side refused the request (Unticketed, Forbidden, NotDue) or if the visit
// failed on this machine (LocalFailure), else Unreachable. It is InDoubt if the request must not be
// sent twice and may have been sent.
//
// A visit whose error is of Kind LocalFailure is not charged to its host: it does not count as an
// attempt at the page, a failure of the host or an outage of its robots.txt. The URL goes back to
// its queue.
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

// A StaleConnError is the error of a Fetcher that sent a request over a kept-open connection which
// the server closed, or left by an HTTP/2 GOAWAY, before any byte of the answer came. The server may
// close an idle connection at any time (RFC 9112, section 9.3.1), so neither the page nor the host is
// at fault: the crawl repeats the visit at the host's pace, and does not count the attempt. It charges
// the host if that happens four times in a row.
type StaleConnError struct{ Err error }

// Error says that the connection was kept open, and what ended it.
func (e *StaleConnError) Error() string { return "on a kept-open connection: " + e.Err.Error() }

// Unwrap returns what ended the connection.
func (e *StaleConnError) Unwrap() error { return e.Err }

// robotsReadLimit is how many bytes of a robots.txt are read: the 500 KiB that count (FMT-08), and
// one more, which shows that the file is longer.
const robotsReadLimit = 512_000 + 1

// BodyLimit returns how many bytes of the body a Fetcher reads, where pageLimit is its limit for
// pages. It reads at least 512,000 bytes of a robots.txt, up to Settings.MaxSitemapBody of a
// sitemap and up to 64 KiB of a tdmrep.json, and one byte more of each, which shows that the body
// is longer.
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

// WantsContentType reports whether a Fetcher reads a body of this content type, where types are the
// types wanted of pages; with no types it wants all. robots.txt, sitemaps, feeds and bodies without
// a content type are always read; so are resources and, in a crawl that visits them, bodies of their types.
func (t Ticket) WantsContentType(contentType string, types []string) bool {
	if len(types) == 0 || contentType == "" || !t.Kind().IsPage() || t.wantsFeedOrSitemapType(contentType) ||
		t.wantsResourceType(contentType) {
		return true
	}
	media, _, _ := strings.Cut(contentType, ";")
	return slices.Contains(types, strings.ToLower(strings.TrimSpace(media)))
}
