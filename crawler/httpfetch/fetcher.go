package httpfetch

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/http1"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

// Config configures a Fetcher. All fields but UserAgent may be zero.
type Config struct {
	// UserAgent is the User-Agent header: product/version (+contact), as in examplebot/1.0
	// (+https://example.com/bot). The product token is that of the Gate's Agent; the contact is a
	// URL or mailto: by which a site's owner can reach the crawl's operator. Compulsory.
	UserAgent string
	// From is the mail address of the crawl's operator, for the From header (RFC 9110,
	// section 10.1.2). Empty: the address of a mailto: contact, which From must not contradict.
	From string
	// Timeout bounds a visit, from dialling to the end of the body. Default 30 s.
	Timeout time.Duration
	// FirstByteTimeout bounds the first part of a visit, from dialling to the end of the
	// response's header. It is at most Timeout, which is also the default.
	FirstByteTimeout time.Duration
	// MaxHeaderBytes bounds the header of a response, interim responses (1xx) included. A
	// response with a longer header fails. Default 64 KiB.
	MaxHeaderBytes int64
	// MaxBody bounds the decoded bytes that are kept of a body; about as many encoded bytes
	// are read. Default 10 MiB, at most 1 TiB. At least 512,000 bytes of a robots.txt are
	// kept, and as many of a sitemap as the crawl's Settings say. A body is also cut where it
	// would not fit into BodyMemory alone.
	MaxBody int64
	// BodyMemory bounds the memory that the bodies of all visits under way take together. A
	// body counts until its handler has returned and its record is written. The Fetchers of a
	// process should share one Budget. A visit that gets no memory is repeated later and does
	// not count as a failure of its host. Nil: a separate Budget of bodymem.DefaultSize.
	BodyMemory *bodymem.Budget
	// ContentTypes are the media types whose bodies are read; responses of other types are
	// read up to the end of their header. Empty: all types. robots.txt files, sitemaps and
	// feeds are always read.
	ContentTypes []string
	// Headers are sent with every request. They may include neither the headers that the crawl
	// sets (User-Agent, From, Accept-Encoding, Range, conditions, cookies, signatures) nor
	// Authorization, nor headers about a body, a proxy or one connection.
	Headers http.Header
	// Signer signs each request, so that a site can distinguish it from a request that only
	// uses the same User-Agent. Nil: requests are not signed.
	Signer *botauth.Signer
	// Cookies keeps cookies between visits to pages. Nil: cookies are ignored.
	Cookies *Cookies
	// Proxy is the proxy for all requests, SCHEME://[USER:PASSWORD@]HOST[:PORT]. The scheme is
	// http, https, socks5 (the Fetcher looks up the names of hosts) or socks5h (the proxy does).
	// Empty: no proxy; environment variables are ignored.
	//
	// Unless AllowPrivate is set, the Fetcher also looks up hosts itself and refuses a host if
	// one of its addresses is not public. A proxy other than socks5 looks the host up again,
	// and may find another address.
	Proxy string
	// RootCAs are the certificate authorities that vouch for servers, and for a proxy of the scheme
	// https. Nil: the system's.
	RootCAs *x509.CertPool
	// ConnectToRules redirect connections. Each rule is HOST:PORT:HOST2:PORT2, as in curl's
	// option --connect-to: connections for HOST:PORT go to HOST2:PORT2. An empty HOST or PORT
	// matches any; an empty HOST2 or PORT2 keeps the URL's own. IPv6 addresses are in brackets.
	// The first rule that matches applies. With a Proxy the rules are ignored.
	ConnectToRules []string
	// AllowPrivate allows connections to loopback, private and other addresses that are not
	// public. Otherwise they are refused, after the name has been resolved.
	AllowPrivate bool
	// CaptureExchanges keeps the bytes of each exchange for crawler.Visit.Exchange, up to the
	// limit of the body once more.
	CaptureExchanges bool
	// Resolver looks up hosts. Nil: net.DefaultResolver.
	Resolver *net.Resolver
	// DNSTTL is how long addresses are cached. Default one minute; negative: not at all. The
	// answer that a host does not exist is cached for at most ten seconds.
	DNSTTL time.Duration
	// IdleConns are the connections that are kept open for later visits, and their limit. The
	// Fetchers of a process should share one. Nil: a separate one of NewDefaultIdleConns.
	IdleConns *IdleConns
	// MaxIdleTime is how long a connection is kept open for a later visit to its host, at most: it
	// is closed before if the server is likely to close it, or if the host is not visited again in
	// that time. Default 90 s; negative: no connection is kept.
	MaxIdleTime time.Duration
	// MaxTLSSessions is how many TLS sessions are remembered, so that the next connection to the
	// host resumes one instead of making a full handshake. Default DefaultMaxTLSSessions; negative:
	// none.
	MaxTLSSessions int
	// HTTP2 also offers HTTP/2 to https servers, unless CaptureExchanges is set. A host then has one
	// connection however many visits it gets at a time, but an idle connection takes about twice the
	// memory, and a visit more processor time.
	HTTP2 bool
	// NoPostQuantum leaves post-quantum key exchange (X25519MLKEM768) out of TLS handshakes. A handshake
	// then takes less processor time on both sides, and 2.2 KB less traffic. But anyone who records the
	// traffic may be able to read it with a quantum computer one day: set NoPostQuantum only if the crawl
	// neither sends nor reads anything secret. The proxy's TLS is not affected.
	NoPostQuantum bool
	// Transport sends the requests. Nil: a transport made from the fields above. A given
	// transport must not follow redirects, must end the reading of a body when the request's
	// context is done, and ignores Proxy and the fields below it. It is meant for tests
	// without a network.
	Transport http.RoundTripper
}

// DefaultMaxTLSSessions is the default of Config.MaxTLSSessions. A session takes about 4 KiB, most of it
// the server's certificate.
const DefaultMaxTLSSessions = 50_000

func (cfg Config) withDefaults() Config {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.FirstByteTimeout = min(cmp.Or(cfg.FirstByteTimeout, cfg.Timeout), cfg.Timeout)
	cfg.MaxHeaderBytes = cmp.Or(cfg.MaxHeaderBytes, 64<<10)
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 10<<20), 1<<40) // 1 TiB leaves room to read a little more than the limit
	cfg.DNSTTL = cmp.Or(cfg.DNSTTL, time.Minute)
	cfg.MaxIdleTime = cmp.Or(cfg.MaxIdleTime, 90*time.Second)
	cfg.MaxTLSSessions = cmp.Or(cfg.MaxTLSSessions, DefaultMaxTLSSessions)
	if cfg.IdleConns == nil {
		cfg.IdleConns = NewDefaultIdleConns()
	}
	if cfg.BodyMemory == nil {
		cfg.BodyMemory = bodymem.NewDefault()
	}
	return cfg
}

// A Fetcher is a crawler.Fetcher for HTTP. Its methods are safe for concurrent use.
type Fetcher struct {
	cfg       Config
	product   string // the product token of cfg.UserAgent
	transport *ticketedClient
	dialer    *crawlDialer
}

var (
	_ crawler.Fetcher              = (*Fetcher)(nil)
	_ crawler.ProductTokenReporter = (*Fetcher)(nil)
	_ crawler.ConnectionKeeper     = (*Fetcher)(nil)
)

// New returns a Fetcher. It returns an error if cfg has a UserAgent of another form, a header that
// is invalid or reserved for the crawl, or a malformed proxy or connect-to rule.
func New(cfg Config) (*Fetcher, error) {
	_, contact, err := httpheader.ParseUserAgent(cfg.UserAgent)
	if err != nil {
		return nil, fmt.Errorf("httpfetch: %w", err)
	}
	mail := httpheader.ContactMail(contact)
	cfg.From = cmp.Or(cfg.From, mail)
	if mail != "" && cfg.From != mail {
		return nil, fmt.Errorf("httpfetch: From %q: the contact in the User-Agent is %q", cfg.From, contact)
	}
	if !httpguts.ValidHeaderFieldValue(cfg.From) {
		return nil, errors.New("httpfetch: From has characters that are invalid in a header")
	}
	for name, values := range cfg.Headers {
		for _, value := range values {
			if err := httpheader.CheckCustom(name, value); err != nil {
				return nil, fmt.Errorf("httpfetch: header %s: %w", name, err)
			}
		}
	}
	cfg = cfg.withDefaults()
	dialer, err := newCrawlDialer(cfg)
	if err != nil {
		return nil, fmt.Errorf("httpfetch: %w", err)
	}
	return newFetcherWithDialer(cfg, dialer), nil
}

func newFetcherWithDialer(cfg Config, dialer *crawlDialer) *Fetcher {
	transport := &ticketedClient{next: cfg.Transport, cfg: cfg, decoders: newDecoderPools()}
	if transport.next == nil {
		transport.next, transport.dialer = newTransport(dialer), dialer
	}
	product, _, _ := strings.Cut(cfg.UserAgent, "/")
	return &Fetcher{cfg: cfg, product: product, transport: transport, dialer: dialer}
}

// SetNextVisit says that host is visited at due or later, and not at all as far as is known if due is
// zero. The Fetcher closes the connections to the host that the server is likely to close before,
// and while it has more than IdleConns allows, those to the host whose next visit is farthest away. It
// forgets the TLS session of a host that is not visited. It implements crawler.ConnectionKeeper.
func (f *Fetcher) SetNextVisit(host string, due time.Time) {
	f.dialer.keeper.setNextVisit(host, due)
	if due.IsZero() {
		f.dialer.forgetTLSSession(host)
	}
}

// CloseConnections closes the connections to the hosts for which wants returns true, unless a visit to
// the host is under way. It implements crawler.ConnectionKeeper.
func (f *Fetcher) CloseConnections(wants func(host string) bool) { f.dialer.keeper.closeIdle(wants) }

// CloseIdleConnections closes the connections that are kept open for the next visit. Call it
// after the last visit; otherwise they stay open for up to Config.MaxIdleTime.
func (f *Fetcher) CloseIdleConnections() {
	f.CloseConnections(func(string) bool { return true })
	(&http.Client{Transport: f.transport.next}).CloseIdleConnections()
}

// UserAgent returns the User-Agent header that all requests have.
func (f *Fetcher) UserAgent() string { return f.cfg.UserAgent }

// ProductToken returns the product token of the User-Agent. It implements
// crawler.ProductTokenReporter.
func (f *Fetcher) ProductToken() string { return f.product }

// KeepsCookies reports whether Config.Cookies keeps the cookies that sites set.
func (f *Fetcher) KeepsCookies() bool { return f.cfg.Cookies != nil }

// Fetch makes one request for the URL of t, and spends t. It returns an error if the response did
// not arrive whole; a body that was cut at its limit is a response.
func (f *Fetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	return f.FetchWithHeader(ctx, t, nil)
}

// FetchWithHeader is Fetch with additional headers for this request, which replace those of
// Config.Headers. The caller makes sure that extra has no header that the crawl itself sets.
func (f *Fetcher) FetchWithHeader(ctx context.Context, t crawler.Ticket, extra http.Header) (*decorum.Response, error) {
	if t.URL().IsZero() {
		return nil, t.Redeem("") // the zero Ticket is always refused
	}
	if err := t.CheckProductToken(f.product); err != nil {
		return nil, err
	}
	trip := &roundTrip{ticket: t}
	defer func() { // also runs if a decoder panics
		if !trip.ticketHoldsShare {
			trip.memoryShare.Close()
		}
	}()
	// If memory must be reserved before the request is sent, wait for it before the visit's
	// time limit starts.
	if err := f.transport.openMemoryShareAndReserve(ctx, trip); err != nil {
		return nil, crawler.NewFetchError(t, err)
	}
	// From here on the visit has a time limit, a recorder if the exchange is kept, and a
	// context that ends the request as soon as a connection is refused.
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.Timeout, timeoutError{"whole answer", f.cfg.Timeout})
	defer cancel()
	if f.cfg.CaptureExchanges {
		trip.recorder = newWireRecorder(ctx, &trip.memoryShare,
			min(t.BodyLimit(f.cfg.MaxBody), f.cfg.maxBufferableBody()))
	}
	ctx, trip.cancelRequest = context.WithCancelCause(ctx)
	defer trip.cancelRequest(nil)
	trip.ctx = ctx
	req, err := trip.newRequest(ctx, f.dialer)
	if err == nil {
		err = http1.CheckHeader(extra) // the crawl's own headers are valid
	}
	if err != nil {
		return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid, Err: err}
	}
	req.Header = f.requestHeader(t, extra)
	// Send the request, read the response, and end the recording whatever the outcome was.
	err = f.performVisitWithKeptConns(req, trip)
	var exchange *decorum.RawExchange
	if trip.recorder != nil {
		exchange = trip.recorder.stopAndTakeExchange(trip.truncation(ctx, err))
	}
	memoryErr := trip.memoryShare.Err()
	if memoryErr == nil { // otherwise the visit is repeated, and this attempt is not archived
		t.SetExchange(exchange)
		trip.retainBodyMemory()
		if err == nil {
			return trip.response, nil
		}
	}
	return nil, crawler.NewFetchError(t, noResponseCause(ctx, outer, err, memoryErr))
}

// performVisitWithKeptConns is ticketedClient.performVisit. It keeps the connections to the host open
// meanwhile, and learns from the visit how long the server keeps them.
func (f *Fetcher) performVisitWithKeptConns(req *http.Request, p *roundTrip) error {
	host := p.ticket.URL().Origin().Host()
	idleFor := f.dialer.keeper.beginVisit(host)
	var err error
	defer func() { // also runs if a decoder panics
		f.dialer.keeper.endVisit(host, func(t serverTimeout) serverTimeout {
			switch {
			case p.response != nil && p.connWasReused:
				t = t.afterReuse(idleFor)
			case idleFor > 0 && errors.As(err, new(*crawler.StaleConnError)):
				t = t.afterClose(idleFor)
			}
			if p.response != nil {
				t = t.afterResponse(p.response.Header)
			}
			return t
		})
		p.takeWireBytes()
		p.ticket.SetConnection(p.connUse)
	}()
	err = f.transport.performVisit(req, p)
	return err
}

// noResponseCause returns why a visit has no response. err comes from net/http or from reading the
// body; memoryErr is the error of a visit that got no memory; ctx and outer are the visit's context
// with and without its time limit.
func noResponseCause(ctx, outer context.Context, err, memoryErr error) error {
	if memoryErr != nil && outer.Err() == nil {
		return memoryErr // the visit's time limit may have passed while it waited for memory
	}
	return cmp.Or(context.Cause(ctx), err)
}

// requestHeader returns the header of a request: Config.Headers, then extra, then what the crawl
// itself sets, except for cookies, a signature and validators.
func (f *Fetcher) requestHeader(t crawler.Ticket, extra http.Header) http.Header {
	h := make(http.Header, len(f.cfg.Headers)+len(extra)+6)
	h["Accept"] = []string{"*/*"}
	maps.Copy(h, f.cfg.Headers)
	maps.Copy(h, extra)
	h["User-Agent"] = []string{f.cfg.UserAgent}
	h["Accept-Encoding"] = []string{acceptEncoding}
	if t.Request().MethodOrGet() == http.MethodPost && h["Content-Type"] == nil {
		h["Content-Type"] = []string{"application/x-www-form-urlencoded"} // colly's default
	}
	if f.cfg.From != "" {
		h["From"] = []string{f.cfg.From}
	}
	return h
}
