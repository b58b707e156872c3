package crawler

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/robots/gate"
	"github.com/decorum-crawler/decorum/storage"
)

// A Ticket is what a Fetcher must be shown: robots.txt was asked, and the host
// is due. It is good for one request to one URL. The zero Ticket is good for
// none.
type Ticket struct{ data *ticketData }

type ticketData struct {
	clearance          gate.Clearance
	permit             politeness.Permit
	crawler            *Crawler // nil: the ticket is of none, and needs no lease
	lease              storage.Lease
	kind               VisitKind
	etag               string // validators of the last visit to the same URL
	lastModified       string
	redeemed           atomic.Bool
	serverAddrClaimed  atomic.Bool                // a connection was found fit for the request
	brakedBeforeSend   atomic.Bool                // a brake was put on before
	sendWasAllowed     atomic.Bool                // RecordSend has let the request leave
	unsafeSendRecorded atomic.Bool                // that a request that is not safe is sent has been noted
	rawExchange        *decorum.RawExchange       // what the fetcher kept of it
	bodyShare          *bodymem.VisitShare        // what its body holds; nil: it is not counted
	bodySpool          *bodymem.CompressedSpool   // the body of a sitemap; nil: it is in the Response
	remoteAddr         atomic.Pointer[netip.Addr] // where the request goes, as far as it is known
	ledgerNumber       int64                      // its number in the ledger; 0: it is not there
	ledgerFailed       bool                       // it could not be written, and was not sent
	ledgerErr          error                      // why, if that stops the crawl
}

// Reasons to refuse a ticket.
var (
	errNoTicket      = errors.New("no ticket")
	errRedeemed      = errors.New("the ticket has been used")
	errWrongURL      = errors.New("the ticket is for another URL")
	errInvalidProofs = errors.New("a ticket needs a valid clearance and a valid permit")
	errHostMismatch  = errors.New("clearance and permit are for different hosts")
)

// newTicket makes a ticket from its two proofs, which only gate.Gate and
// politeness.Limiter can give.
func newTicket(c gate.Clearance, p politeness.Permit) (Ticket, error) {
	if !c.WasIssued() || !p.WasIssued() {
		return Ticket{}, &decorum.Error{Op: "make ticket", Kind: decorum.Unticketed, Err: errInvalidProofs}
	}
	if c.URL().Origin().Host() != p.Host() {
		return Ticket{}, &decorum.Error{Op: "make ticket", URL: c.URL().String(), Kind: decorum.Unticketed, Err: errHostMismatch}
	}
	data := &ticketData{clearance: c, permit: p}
	if c.IsForRobots() {
		data.kind = RobotsVisit
	}
	return Ticket{data}, nil
}

// newTicketForLease returns the ticket of a visit that is cleared and has its permit.
func (c *Crawler) newTicketForLease(lv *leasedVisit) (Ticket, error) {
	l := lv.lease
	t, err := newTicket(lv.clearance, lv.permit)
	if err != nil {
		return t, err
	}
	t.data.crawler, t.data.lease, t.data.kind = c, l, lv.kind
	if l.VisitHistorySummary != nil && l.Request == nil && lv.kind.isConditional() {
		t.data.etag, t.data.lastModified = l.VisitHistorySummary.ETag, l.VisitHistorySummary.LastModified
	}
	return t, nil
}

// URL returns the URL that the ticket is good for.
func (t Ticket) URL() decorum.URL { return t.state().clearance.URL() }

// state returns the data of the ticket; of the zero Ticket, data that nothing else refers to.
func (t Ticket) state() *ticketData {
	if t.data == nil {
		return &ticketData{}
	}
	return t.data
}

// Kind returns what the visit is to.
func (t Ticket) Kind() VisitKind { return t.state().kind }

// wantsFeedType reports whether an answer of this content type is for a crawl that
// reads feeds, and perhaps one. It is read whatever else is wanted.
func (t Ticket) wantsFeedType(contentType string) bool {
	return t.data != nil && t.data.crawler != nil && t.data.crawler.pages.shouldTryAsFeed(t.data.lease, contentType)
}

// Lease returns the lease that the visit is for: the URL as it was queued, with its
// Depth and CallbackData. It is zero if there is none.
func (t Ticket) Lease() storage.Lease { return t.state().lease }

// Request returns how the URL is asked for; nil: by GET, as all but pages are.
func (t Ticket) Request() *storage.NonGETRequest {
	if !t.Kind().IsPage() {
		return nil
	}
	return t.state().lease.Request
}

// Validators returns the ETag and the Last-Modified of the answer that the last
// visit to the URL got, as they came; empty where the page is wanted whole. A
// Fetcher sends them as If-None-Match and If-Modified-Since.
func (t Ticket) Validators() (etag, lastModified string) {
	return t.state().etag, t.state().lastModified
}

// Redeem spends the ticket on a request to url. Whoever sends requests must call
// it, and send nothing if it returns an error: of Kind Unticketed, or InDoubt if
// the request must not be sent twice and was sent before.
func (t Ticket) Redeem(url string) error {
	if err := t.redeem(url); err != nil {
		return &decorum.Error{Op: "show ticket", URL: url, Kind: decorum.Unticketed, Err: err}
	}
	if !t.Request().IsSafe() && t.data.lease.Sent {
		return &decorum.Error{Op: "send", URL: url, Kind: decorum.InDoubt, Err: errSentBefore}
	}
	return nil
}

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

// CheckMaySend returns why nothing more may be sent for the ticket, nil if something may. The cause of
// ctx, that of Fetch, is the reason if ctx is done: a brake cancels it, say. Or the lease has run out,
// and by now somebody else may be visiting the host. The zero Ticket may send nothing. Whoever sends
// requests asks right before each write, as late as can be.
func (t Ticket) CheckMaySend(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return t.checkLease()
}

// checkLease returns an error if the lease has run out, and for the zero Ticket. A process that was
// stopped, or a machine that slept, learns so by it when it wakes up in the midst of sending.
func (t Ticket) checkLease() error {
	if t.data == nil {
		return errNoTicket
	}
	if t.data.crawler != nil && !t.data.crawler.activeLeases.isUnexpired(t.data.lease) {
		return errLeaseExpired
	}
	return nil
}

// ClaimServerAddr asks whether the request may go to addr, which may serve other hosts
// as well. Whoever sends requests must call it when the connection is made, or
// one that was kept open is taken, and send nothing over it if it returns an
// error: one that carries a decorum.Decision, of ReasonAddressBusy, ReasonBrake or
// ReasonOtherProcesses, or one of Kind Unticketed.
func (t Ticket) ClaimServerAddr(addr netip.Addr) error {
	if err := t.checkLease(); err != nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed, Err: err}
	}
	now := time.Now()
	if c := t.data.crawler; c != nil {
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

// maybeSent reports whether something may have been sent for the ticket.
func (t Ticket) maybeSent() bool {
	return t.state().redeemed.Load() && !t.state().brakedBeforeSend.Load()
}

// RecordSend notes that the request is sent now, in the ledger if there is one. Whoever
// sends requests must call it after ClaimServerAddr, before the first byte leaves, and send
// nothing if it returns an error. For one that is not safe it returns when the note
// has reached the disk.
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
	return nil
}

// isUnsafeSendRecorded reports whether a request that is not safe may have been sent.
func (t Ticket) isUnsafeSendRecorded() bool { return t.state().unsafeSendRecorded.Load() }

// SetExchange hands over the bytes of the ticket's exchange, for Visit.Exchange,
// whether a whole answer came or not. It is called before Fetch returns, if at
// all; nil is none.
func (t Ticket) SetExchange(x *decorum.RawExchange) { t.state().rawExchange = x }

// RetainBodyMemoryForVisit keeps the memory of the answer's body reserved until the visit is over: its
// handler has returned, and it is archived and recorded. A ticket without a Crawler
// gives the memory back at once. A Fetcher calls RetainBodyMemoryForVisit before Fetch returns an
// answer.
func (t Ticket) RetainBodyMemoryForVisit(s *bodymem.VisitShare) {
	if t.data == nil || t.data.crawler == nil {
		s.Close()
		return
	}
	t.data.bodyShare = s
}

// ChargeBodyCopy counts n bytes that a Fetcher or its callbacks copied of the body.
func (t Ticket) ChargeBodyCopy(n int) { t.state().bodyShare.Charge(int64(n)) }

// StreamsBody reports whether the answer's body, that of a sitemap, is read as a stream and
// may be long. A Fetcher may then pass it to SetSpooledBody and leave it out of the Response.
func (t Ticket) StreamsBody() bool {
	return t.Kind() == SitemapVisit
}

// SetSpooledBody passes the answer's body to the crawl. Call it before Fetch returns the
// answer.
func (t Ticket) SetSpooledBody(p *bodymem.CompressedSpool) { t.state().bodySpool = p }

// A request that is not safe (RFC 9110, section 9.2.1), as a POST is not, is sent
// once at most: before its first byte leaves it is marked in the store, durably,
// and what is marked is not sent again. Whether the server acted upon it, when no
// whole answer came, nobody can say: that is told, and left to a person.

// Reasons not to send a request that must not be sent twice.
var (
	errSentBefore = errors.New("it was sent before, and what came of it is not known")
	errNotMarked  = errors.New("it cannot be noted that it is sent")
)

// markSentDurably notes durably that the request of l is about to be sent. If that fails,
// nothing is noted, and nothing is to be sent.
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

// countAndLogIfInDoubt tells of a request that was sent, now or before, and to which no whole
// answer came.
func (p *pageHandler) countAndLogIfInDoubt(v *Visit) {
	if errors.Is(v.Err, decorum.InDoubt) {
		p.counters.count(func(s *Stats) { s.InDoubt++ })
		p.log.Warn("a request was sent whose outcome is not known; it is not sent again",
			"method", v.Lease.Request.MethodOrGet(), "url", v.URL(), "why", v.Err)
	}
}
