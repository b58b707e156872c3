package crawler

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/httpcache"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A Ticket proves to a Fetcher that robots.txt allows a URL and that its host is due. It is valid
// for one request to one URL. The zero Ticket is valid for none.
type Ticket struct{ data *ticketData }

type ticketData struct {
	clearance          gate.Clearance
	permit             politeness.Permit
	crawler            *Crawler // nil for a ticket made outside a crawl, which needs no lease
	lease              storage.Lease
	kind               VisitKind
	etag               string // validators of the last visit to the URL
	lastModified       string
	variantKey         string      // says for which requests they stand: see httpcache.VariantKey
	requestHeader      http.Header // set by Validators
	redeemed           atomic.Bool
	serverAddrClaimed  atomic.Bool                // ClaimServerAddr accepted a connection
	brakedBeforeSend   atomic.Bool                // a brake refused the first connection
	sendWasAllowed     atomic.Bool                // RecordSend let the request leave
	unsafeSendRecorded atomic.Bool                // the store has marked an unsafe request as sent
	rawExchange        *decorum.RawExchange       // set by SetExchange
	connUse            ConnectionUse              // set by SetConnection
	bodyShare          *bodymem.VisitShare        // memory charged for the body; nil if it is not counted
	bodySpool          *bodymem.CompressedSpool   // the body of a sitemap; nil if it is in the Response
	remoteAddr         atomic.Pointer[netip.Addr] // where the request goes; nil until a connection is accepted
	ledgerNumber       int64                      // number of its record in the ledger; 0: none
	ledgerFailed       bool                       // the ledger could not be written, so nothing was sent
	ledgerErr          error                      // error that stops the crawl; nil if the crawl is ending anyway
}

// Reasons to refuse a ticket.
var (
	errNoTicket      = errors.New("no ticket")
	errRedeemed      = errors.New("the ticket has been used")
	errWrongURL      = errors.New("the ticket is for another URL")
	errInvalidProofs = errors.New("a ticket needs a valid clearance and a valid permit")
	errHostMismatch  = errors.New("clearance and permit are for different hosts")
)

// newTicket makes a ticket from its two proofs, which only gate.Gate and politeness.Limiter issue.
func newTicket(c gate.Clearance, p politeness.Permit) (Ticket, error) {
	if !c.WasIssued() || !p.WasIssued() {
		return Ticket{}, &decorum.Error{Op: "make ticket", Kind: decorum.Unticketed, Err: errInvalidProofs}
	}
	if c.URL().Origin().Host() != p.Host() {
		return Ticket{}, &decorum.Error{Op: "make ticket", URL: c.URL().String(),
			Kind: decorum.Unticketed, Err: errHostMismatch}
	}
	data := &ticketData{clearance: c, permit: p}
	if c.IsForRobots() {
		data.kind = RobotsVisit
	}
	return Ticket{data}, nil
}

// newTicketForLease makes the ticket of a visit that has its clearance and its permit.
func (c *Crawler) newTicketForLease(lv *leasedVisit) (Ticket, error) {
	l := lv.lease
	t, err := newTicket(lv.clearance, lv.permit)
	if err != nil {
		return t, err
	}
	t.data.crawler, t.data.lease, t.data.kind = c, l, lv.kind
	if l.VisitHistorySummary != nil && l.Request == nil && lv.kind.isConditional() {
		h := l.VisitHistorySummary
		t.data.etag, t.data.lastModified, t.data.variantKey = h.ETag, h.LastModified, h.VariantKey
	}
	return t, nil
}

// URL returns the URL that the ticket is valid for.
func (t Ticket) URL() decorum.URL { return t.state().clearance.URL() }

// state returns the data of t, or empty data for the zero Ticket.
func (t Ticket) state() *ticketData {
	if t.data == nil {
		return &ticketData{}
	}
	return t.data
}

// Kind returns what the visit is to.
func (t Ticket) Kind() VisitKind { return t.state().kind }

// wantsFeedOrSitemapType reports whether the crawl may read an answer of this content type as a feed, or as
// a sitemap that is a seed. A Fetcher then reads the body, whatever types it wants of pages.
func (t Ticket) wantsFeedOrSitemapType(contentType string) bool {
	if t.data == nil || t.data.crawler == nil {
		return false
	}
	pages := &t.data.crawler.pages
	return pages.shouldTryAsFeed(t.data.lease, contentType) ||
		isSitemapType(contentType) && pages.mayReadSeedSitemap(t.data.lease, contentType)
}

// wantsResourceType reports whether the visit is to a resource of a page, or the answer has the type of one
// in a crawl that visits them: another page may need what one page links to.
func (t Ticket) wantsResourceType(contentType string) bool {
	return t.Lease().Source == storage.SourceResource || t.data != nil && t.data.crawler != nil &&
		t.data.crawler.Settings.FollowedLinkKinds.Resources && isResourceType(contentType)
}

// Lease returns the lease that the visit is made for: the URL as queued, with its Depth and
// CallbackData. It is zero for a ticket made outside a crawl.
func (t Ticket) Lease() storage.Lease { return t.state().lease }

// Request returns the method, header and body of the request; nil means GET. Only pages have
// others.
func (t Ticket) Request() *storage.NonGETRequest {
	if !t.Kind().IsPage() {
		return nil
	}
	return t.state().lease.Request
}

// Validators returns the ETag and Last-Modified of the last answer for the URL, unchanged. A
// Fetcher sends them as If-None-Match and If-Modified-Since. request is the header that it is about to
// send, complete but for these two; nil if the protocol has none. The validators are empty if the crawl
// wants the whole body, and if the last answer depended, by its Vary header, on a header that is another
// one in request.
func (t Ticket) Validators(request http.Header) (etag, lastModified string) {
	if t.data == nil {
		return "", ""
	}
	t.data.requestHeader = request
	if !httpcache.MatchesVariant(t.data.variantKey, request) {
		return "", ""
	}
	return t.data.etag, t.data.lastModified
}

// Redeem spends the ticket on a request to url. A Fetcher must call it first, and send nothing if
// it returns an error: of Kind Unticketed, or InDoubt if the request must not be sent twice and may
// have been sent before.
func (t Ticket) Redeem(url string) error {
	if err := t.redeem(url); err != nil {
		return &decorum.Error{Op: "show ticket", URL: url, Kind: decorum.Unticketed, Err: err}
	}
	if !t.Request().IsSafe() && t.data.lease.Sent {
		return &decorum.Error{Op: "send", URL: url, Kind: decorum.InDoubt, Err: errSentBefore}
	}
	return nil
}

// redeem checks that t is valid for url and unused, and marks it as used.
func (t Ticket) redeem(url string) error {
	if t.data == nil {
		return errNoTicket
	}
	if url != t.URL().String() {
		if u, err := decorum.ParseURL(url); err != nil || u != t.URL() {
			return errWrongURL
		}
	}
	if t.data.redeemed.Swap(true) {
		return errRedeemed
	}
	return t.checkLease()
}

// CheckMaySend returns why the ticket allows no further write; nil if it allows one. ctx is the
// context of Fetch: if it is done, the error is its cause, for example a brake. Otherwise the error
// says that the lease has expired, when another process may be visiting the host. The zero Ticket
// allows nothing. A Fetcher calls CheckMaySend immediately before each write.
func (t Ticket) CheckMaySend(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.checkLease()
}

// checkLease returns an error if the lease has expired, and for the zero Ticket. A process that was
// stopped, or a machine that slept, may notice the expiry only here, in the middle of sending.
func (t Ticket) checkLease() error {
	if t.data == nil {
		return errNoTicket
	}
	if t.data.crawler != nil && !t.data.crawler.activeLeases.isUnexpired(t.data.lease) {
		return errLeaseExpired
	}
	return nil
}

// ClaimServerAddr asks whether the request may go to addr, which may serve other hosts as well. A
// Fetcher must call it when it has opened a connection or taken an idle one, and send nothing over
// the connection if it returns an error. The error is of Kind Unticketed, or carries a
// decorum.Decision of ReasonAddressBusy, ReasonBrake or ReasonOtherProcesses.
func (t Ticket) ClaimServerAddr(addr netip.Addr) error {
	if err := t.checkLease(); err != nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed, Err: err}
	}
	now := time.Now()
	if c := t.data.crawler; c != nil {
		// A brake, or a loss of contact with the other processes, may have come after the permit.
		now = c.now()
		if d := c.Brakes.CheckStopped(t.data.permit.Host(), now); d.Action != decorum.Proceed {
			t.data.brakedBeforeSend.Store(!t.data.serverAddrClaimed.Load())
			return d.Err()
		}
		if d := c.budget.checkVisitWithCoordinator(now); d.Action != decorum.Proceed {
			return d.Err()
		}
	}
	if err := t.data.permit.ClaimServerAddr(now, addr); err != nil {
		return err
	}
	t.data.serverAddrClaimed.Store(true)
	t.data.remoteAddr.Store(&addr)
	return nil
}

// maybeSent reports whether something may have been sent for t.
func (t Ticket) maybeSent() bool {
	return t.state().redeemed.Load() && !t.state().brakedBeforeSend.Load()
}

// RecordSend records that the request is about to be sent, in the ledger if there is one. A Fetcher
// must call it after ClaimServerAddr, before the first byte leaves, and send nothing if it returns
// an error. For an unsafe request it returns after the mark has reached the disk.
func (t Ticket) RecordSend(ctx context.Context) error {
	if t.data == nil {
		return &decorum.Error{Op: "send", Kind: decorum.Unticketed, Err: errNoTicket}
	}
	if !t.Request().IsSafe() && !t.data.unsafeSendRecorded.Load() {
		if err := t.data.crawler.ledgerEntries.markSentDurably(ctx, t.data.lease); err != nil {
			return err
		}
		t.data.unsafeSendRecorded.Store(true)
	}
	if t.data.crawler != nil && t.data.ledgerNumber == 0 {
		if err := t.data.crawler.ledgerEntries.writeLedgerRequest(ctx, t); err != nil {
			return err
		}
	}
	t.data.sendWasAllowed.Store(true)
	if t.data.crawler != nil {
		t.data.crawler.hasSent.Store(true)
	}
	return nil
}

// isUnsafeSendRecorded reports whether an unsafe request may have been sent.
func (t Ticket) isUnsafeSendRecorded() bool { return t.state().unsafeSendRecorded.Load() }

// SetExchange sets Visit.Exchange to the bytes sent and received, whether a whole answer came or
// not. A Fetcher that keeps them calls it before Fetch returns.
func (t Ticket) SetExchange(x *decorum.RawExchange) { t.state().rawExchange = x }

// SetConnection sets Visit.Connection. A Fetcher that knows its connections calls it before Fetch
// returns, whether a whole answer came or not.
func (t Ticket) SetConnection(use ConnectionUse) { t.state().connUse = use }

// RetainBodyMemoryForVisit keeps the memory of the body reserved until the visit is over: its
// handler has returned, and it is archived and recorded. A Fetcher calls it before Fetch returns an
// answer. For a ticket made outside a crawl the memory is released at once.
func (t Ticket) RetainBodyMemoryForVisit(s *bodymem.VisitShare) {
	if t.data == nil || t.data.crawler == nil {
		s.Close()
		return
	}
	t.data.bodyShare = s
}

// ReusesBody reports whether nothing uses the body of the answer after the visit, so that a Fetcher may read
// it into memory that serves other visits before and after: see Settings.ReuseVisitMemory.
func (t Ticket) ReusesBody() bool {
	return t.data != nil && t.data.crawler != nil && t.data.crawler.reusesVisitMemory() && t.data.kind.IsPage()
}

// ChargeBodyCopy charges n bytes for a copy of the body that a Fetcher or its callbacks made.
func (t Ticket) ChargeBodyCopy(n int) { t.state().bodyShare.Charge(int64(n)) }

// StreamsBody reports whether the crawl reads the body as a stream, because it is a sitemap and may
// be long. A Fetcher may then pass the body to SetSpooledBody instead of Response.Body.
func (t Ticket) StreamsBody() bool {
	return t.Kind() == SitemapVisit
}

// SetSpooledBody passes the body to the crawl. A Fetcher calls it before Fetch returns the answer.
func (t Ticket) SetSpooledBody(p *bodymem.CompressedSpool) { t.state().bodySpool = p }

// An unsafe request (RFC 9110, section 9.2.1), such as a POST, is sent at most once: the store
// durably marks it before its first byte leaves, and a marked request is not sent again. If no
// whole answer came, the crawl cannot know whether the server acted on the request; it logs that,
// and a person decides.

// Reasons not to send a request that must not be sent twice.
var (
	errSentBefore = errors.New("it was sent before, and its outcome is unknown")
	errNotMarked  = errors.New("cannot record that it is sent")
)

// markSentDurably durably marks the request of l as sent. If that fails, it removes the mark, and
// the caller must not send the request.
func (e *ledgerEntries) markSentDurably(ctx context.Context, l storage.Lease) error {
	err := e.store.MarkSent(ctx, l, true)
	if err == nil {
		if err = e.store.Flush(ctx); err == nil {
			return nil
		}
		err = errors.Join(err, e.store.MarkSent(commitContext(ctx), l, false))
	}
	return &decorum.Error{Op: "send", URL: l.URL.String(), Kind: decorum.NotDue, Err: errors.Join(errNotMarked, err)}
}

// countAndLogIfInDoubt reports a request that was sent, now or in an earlier visit, and got no
// whole answer.
func (p *pageHandler) countAndLogIfInDoubt(v *Visit) {
	if errors.Is(v.Err, decorum.InDoubt) {
		p.counters.count(func(s *Stats) { s.InDoubt++ })
		p.log.Warn("the outcome of a sent request is unknown; it is not sent again",
			"method", v.Lease.Request.MethodOrGet(), "url", v.URL(), "why", v.Err)
	}
}
