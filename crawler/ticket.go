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
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/storage"
)

// A Ticket is what a Fetcher must be shown: robots.txt was asked, and the host
// is due. It is good for one request to one URL. The zero Ticket is good for
// none.
type Ticket struct{ stub *stub }

type stub struct {
	clearance      robots.Clearance
	permit         politeness.Permit
	crawl          *Crawler // nil: the ticket is of none, and needs no lease
	lease          storage.Lease
	isPrerequisite bool
	detour         bool   // an errand to a tdmrep.json
	etag           string // validators of the last visit to the same URL
	modified       string
	used           atomic.Bool
	connected      atomic.Bool                // a connection was found fit for the request
	refused        atomic.Bool                // a brake was put on before
	sending        atomic.Bool                // Send has let the request leave
	marked         atomic.Bool                // that a request that is not safe is sent has been noted
	exchange       *decorum.Exchange          // what the fetcher kept of it
	share          *bodymem.Share             // what its body holds; nil: it is not counted
	spool          *bodymem.Spool             // the body of a sitemap; nil: it is in the Response
	addr           atomic.Pointer[netip.Addr] // where the request goes, as far as it is known
	entered        int64                      // its number in the ledger; 0: it is not there
	unwritten      bool                       // it could not be written, and was not sent
	lost           error                      // why, if that stops the crawl
}

// Reasons to refuse a ticket.
var (
	errNoTicket  = errors.New("no ticket")
	errUsed      = errors.New("the ticket has been used")
	errOtherURL  = errors.New("the ticket is for another URL")
	errProofless = errors.New("a ticket needs a valid clearance and a valid permit")
	errOtherHost = errors.New("clearance and permit are for different hosts")
)

// NewTicket makes a ticket from its two proofs, which only robots.Gate and
// politeness.Limits can give.
func NewTicket(c robots.Clearance, p politeness.Permit) (Ticket, error) {
	if !c.Valid() || !p.Valid() {
		return Ticket{}, &decorum.Error{Op: "make ticket", Kind: decorum.Unticketed, Err: errProofless}
	}
	if c.URL().Origin().Host() != p.Host() {
		return Ticket{}, &decorum.Error{Op: "make ticket", URL: c.URL().String(), Kind: decorum.Unticketed, Err: errOtherHost}
	}
	return Ticket{&stub{clearance: c, permit: p}}, nil
}

// ticketFor returns the ticket for the visit that the two proofs allow.
func (c *Crawler) ticketFor(l storage.Lease, cl robots.Clearance, p politeness.Permit) (Ticket, error) {
	t, err := NewTicket(cl, p)
	if err != nil {
		return t, err
	}
	t.stub.crawl, t.stub.lease = c, l
	t.stub.isPrerequisite, t.stub.detour = !isPage(l, cl), isDetour(l, cl)
	condition(t, l, cl)
	return t, nil
}

// URL returns the URL that the ticket is good for.
func (t Ticket) URL() decorum.URL {
	if t.stub == nil {
		return decorum.URL{}
	}
	return t.stub.clearance.URL()
}

// ForRobots reports whether the request is for a robots.txt.
func (t Ticket) ForRobots() bool { return t.stub != nil && t.stub.clearance.ForRobots() }

// IsPrerequisite reports whether the answer is for the crawl itself, and not a page: a
// robots.txt, a sitemap or a tdmrep.json. It is read whatever its content type.
func (t Ticket) IsPrerequisite() bool { return t.ForRobots() || t.stub != nil && t.stub.isPrerequisite }

// WantsFeed reports whether an answer of this content type is for a crawl that
// reads feeds, and perhaps one. It is read whatever else is wanted.
func (t Ticket) WantsFeed(contentType string) bool {
	return t.stub != nil && t.stub.crawl != nil && t.stub.crawl.mayBeFeed(t.stub.lease, contentType)
}

// Lease returns what the hallway has in hand: the URL as it was queued, with its
// depth and Context. It is zero if nothing is.
func (t Ticket) Lease() storage.Lease {
	if t.stub == nil {
		return storage.Lease{}
	}
	return t.stub.lease
}

// Request returns how the URL is asked for; nil: by GET, as every errand is.
func (t Ticket) Request() *storage.Request {
	if t.stub == nil || t.IsPrerequisite() {
		return nil
	}
	return t.stub.lease.Request
}

// Validators returns the ETag and the Last-Modified of the answer that the last
// visit to the URL got, as they came; empty where the page is wanted whole. A
// Fetcher sends them as If-None-Match and If-Modified-Since.
func (t Ticket) Validators() (etag, lastModified string) {
	if t.stub == nil {
		return "", ""
	}
	return t.stub.etag, t.stub.modified
}

// Redeem spends the ticket on a request to url. Whoever sends requests must call
// it, and send nothing if it returns an error: of Kind Unticketed, or InDoubt if
// the request must not be sent twice and was sent before.
func (t Ticket) Redeem(url string) error {
	if err := t.redeem(url); err != nil {
		return &decorum.Error{Op: "show ticket", URL: url, Kind: decorum.Unticketed, Err: err}
	}
	if !t.Request().IsSafe() && t.stub.lease.Sent {
		return &decorum.Error{Op: "send", URL: url, Kind: decorum.InDoubt, Err: errSentBefore}
	}
	return nil
}

func (t Ticket) redeem(url string) error {
	if t.stub == nil {
		return errNoTicket
	}
	if url != t.URL().String() {
		if u, err := decorum.ParseURL(url); err != nil || u != t.URL() {
			return errOtherURL
		}
	}
	if t.stub.used.Swap(true) {
		return errUsed
	}
	return t.Lapsed()
}

// Lapsed returns an error if the lease that the ticket is for has run out: by now
// somebody else may be visiting the host; and for the zero Ticket. Whoever sends requests asks right before each
// write, as late as can be, and sends nothing then.
func (t Ticket) Lapsed() error {
	if t.stub == nil {
		return errNoTicket
	}
	if t.stub.crawl != nil && !t.stub.crawl.hands.holds(t.stub.lease) {
		return errLapsed
	}
	return nil
}

// Connect asks whether the request may go to addr, which may serve other hosts
// as well. Whoever sends requests must call it when the connection is made, or
// one that was kept open is taken, and send nothing over it if it returns an
// error: a *politeness.Busy, a *politeness.Braked, or one of Kind Unticketed.
func (t Ticket) Connect(addr netip.Addr) error {
	if err := t.Lapsed(); err != nil {
		return &decorum.Error{Op: "connect to", URL: addr.String(), Kind: decorum.Unticketed, Err: err}
	}
	now := time.Now()
	if c := t.stub.crawl; c != nil {
		now = c.now()
		if err := c.Brakes.Stopped(t.stub.permit.Host(), now); err != nil {
			t.stub.refused.Store(!t.stub.connected.Load())
			return err
		}
		if err := c.may(now); err != nil {
			return err
		}
	}
	if err := t.stub.permit.Bind(now, addr); err != nil {
		return err
	}
	t.stub.connected.Store(true)
	t.stub.addr.Store(&addr)
	return nil
}

// sent reports whether something may have been sent for the ticket.
func (t Ticket) sent() bool { return t.Used() && !t.stub.refused.Load() }

// Send notes that the request is sent now, in the ledger if there is one. Whoever
// sends requests must call it after Connect, before the first byte leaves, and send
// nothing if it returns an error. For one that is not safe it returns when the note
// has reached the disk.
func (t Ticket) Send(ctx context.Context) error {
	if t.stub == nil {
		return &decorum.Error{Op: "send", Kind: decorum.Unticketed, Err: errNoTicket}
	}
	if !t.Request().IsSafe() && !t.stub.marked.Load() {
		if err := t.stub.crawl.mark(ctx, t.stub.lease); err != nil {
			return err
		}
		t.stub.marked.Store(true)
	}
	if t.stub.crawl != nil && t.stub.entered == 0 {
		if err := t.stub.crawl.enter(ctx, t); err != nil {
			return err
		}
	}
	t.stub.sending.Store(true)
	return nil
}

// isMarked reports whether a request that is not safe may have been sent.
func (t Ticket) isMarked() bool { return t.stub != nil && t.stub.marked.Load() }

// Keep hands over the bytes of the ticket's exchange, for Visit.Exchange,
// whether a whole answer came or not. It is called before Fetch returns, if at
// all; nil is none.
func (t Ticket) Keep(x *decorum.Exchange) {
	if t.stub != nil {
		t.stub.exchange = x
	}
}

// HoldBody keeps the memory of the answer's body reserved until the visit is over: its
// handler has returned, and it is archived and recorded. A ticket without a Crawler
// gives the memory back at once. A Fetcher calls HoldBody before Fetch returns an
// answer.
func (t Ticket) HoldBody(s *bodymem.Share) {
	if t.stub == nil || t.stub.crawl == nil {
		s.Close()
		return
	}
	t.stub.share = s
}

// ChargeBody counts n bytes that a Fetcher or its callbacks copied of the body.
func (t Ticket) ChargeBody(n int) {
	if t.stub != nil {
		t.stub.share.Charge(int64(n))
	}
}

// Streams reports whether the answer's body, that of a sitemap, is read as a stream and
// may be long. A Fetcher may then pass it to KeepBody and leave it out of the Response.
func (t Ticket) Streams() bool {
	return t.stub != nil && t.stub.crawl != nil && t.stub.isPrerequisite && !t.stub.detour && !t.ForRobots()
}

// KeepBody passes the answer's body to the crawl. Call it before Fetch returns the
// answer.
func (t Ticket) KeepBody(p *bodymem.Spool) {
	if t.stub != nil {
		t.stub.spool = p
	}
}

// Used reports whether the ticket has been spent.
func (t Ticket) Used() bool { return t.stub != nil && t.stub.used.Load() }
