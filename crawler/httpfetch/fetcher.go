package httpfetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

// Config is how a Fetcher fetches.
type Config struct {
	// UserAgent is the User-Agent header: product/version (+contact). Compulsory.
	UserAgent string
	// From is the mail address of who runs the crawl, for the From header (RFC
	// 9110, section 10.1.2); empty: none is sent.
	From string
	// Timeout bounds a visit, from dialling to the end of the body. Default 30 s.
	Timeout time.Duration
	// FirstByteTimeout bounds the first part of a visit, from dialling to the end of
	// the answer's header. Default, and at most: Timeout.
	FirstByteTimeout time.Duration
	// MaxHeaderBytes is how many bytes the header of an answer may have, interim
	// answers (1xx) included. An answer with a longer one fails. Default 64 KiB.
	MaxHeaderBytes int64
	// MaxBody is how many bytes of a body, as decoded, are kept; about as many
	// are read of it encoded. Default 10 MiB, at most 1 TiB.
	// Of a robots.txt at least 512,000 bytes are kept, of a sitemap as many as the
	// crawl's Settings say. What BodyMemory cannot hold alone is not kept either.
	MaxBody int64
	// BodyMemory is the memory that the bodies of all visits under way take together, until
	// their handlers have returned and their records are written. The Fetchers of a
	// process should share one. A visit that gets none is made again later, and its host
	// is not charged. Nil: one of the Fetcher's own, of bodymem.DefaultSize.
	BodyMemory *bodymem.Budget
	// ContentTypes are the media types whose bodies are read; of others only
	// the headers are. Empty: all. robots.txt, sitemaps and feeds are always read.
	ContentTypes []string
	// Headers go with every request. They may hold neither what the crawl itself says
	// (User-Agent, From, Accept-Encoding, Range, conditions, cookies, signatures) nor
	// Authorization, nor what is for a body, a proxy or one connection.
	Headers http.Header
	// Signer signs each request, so that a site can tell it from one that only bears
	// the same name; nil: they are not signed.
	Signer *botauth.Signer
	// Cookies keeps cookies between the visits to pages; nil: they are ignored.
	Cookies *Cookies
	// Proxy is the proxy that all requests go through, SCHEME://[USER:PASSWORD@]HOST[:PORT].
	// The scheme is http, https, socks5, where the Fetcher looks up the names of hosts, or
	// socks5h, where the proxy does. Empty: none; variables of the environment are ignored.
	// Unless AllowPrivate is set, hosts are looked up here as well and refused if one of
	// their addresses is not public; but a proxy other than socks5 looks them up again, and
	// may get another answer.
	Proxy string
	// ConnectToRules send connections elsewhere than to where the URL says. Each is
	// HOST:PORT:HOST2:PORT2, as curl's option --connect-to: connections for HOST:PORT go to
	// HOST2:PORT2. An empty HOST or PORT stands for any, an empty HOST2 or PORT2 for the
	// URL's own; IPv6 addresses are in brackets; the first rule that matches counts. They
	// are ignored where there is a Proxy.
	ConnectToRules []string
	// AllowPrivate allows connections to loopback, private and other addresses
	// that are not public. They are refused otherwise, after the name has been
	// resolved.
	AllowPrivate bool
	// CaptureExchanges keeps the bytes of each exchange, for crawler.Visit.Exchange, as
	// many as of a body again. Requests are then made by HTTP/1.1 alone.
	CaptureExchanges bool
	// Resolver looks up hosts; nil: net.DefaultResolver. What it says is
	// remembered for DNSTTL, default a minute, negative: not at all; that there is
	// no such host for at most ten seconds.
	Resolver *net.Resolver
	DNSTTL   time.Duration
	// Transport sends the requests; nil: one made from the fields above. One
	// that is given must not follow redirects, must end the reading of a body when the
	// context of its request is done, and the fields from Proxy on mean nothing to it.
	// It is for tests without a network.
	Transport http.RoundTripper
}

func (cfg Config) withDefaults() Config {
	cfg.Timeout = cmp.Or(cfg.Timeout, 30*time.Second)
	cfg.FirstByteTimeout = min(cmp.Or(cfg.FirstByteTimeout, cfg.Timeout), cfg.Timeout)
	cfg.MaxHeaderBytes = cmp.Or(cfg.MaxHeaderBytes, 64<<10)
	cfg.MaxBody = min(cmp.Or(cfg.MaxBody, 10<<20), 1<<40) // more is read, to see whether there is more
	cfg.DNSTTL = cmp.Or(cfg.DNSTTL, time.Minute)
	if cfg.BodyMemory == nil {
		cfg.BodyMemory = bodymem.NewDefault()
	}
	return cfg
}

// A Fetcher is a crawler.Fetcher on net/http. Its methods may be called at the
// same time.
type Fetcher struct {
	cfg       Config
	transport *ticketedClient
	dialer    *crawlDialer
}

var _ crawler.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher. It returns an error if cfg has no UserAgent, a header that may not be
// sent, or a proxy or a rule that is not well-formed.
func New(cfg Config) (*Fetcher, error) {
	if cfg.UserAgent == "" {
		return nil, errors.New("httpfetch: a User-Agent is compulsory: product/version (+contact)")
	}
	if !httpguts.ValidHeaderFieldValue(cfg.UserAgent) || !httpguts.ValidHeaderFieldValue(cfg.From) {
		return nil, errors.New("httpfetch: User-Agent or From holds characters that no header may hold")
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
		transport.next, transport.dialer = newHTTPTransport(dialer), dialer
	}
	return &Fetcher{cfg: cfg, transport: transport, dialer: dialer}
}

// CloseIdleConnections closes the connections that are kept open for a next visit.
// Call it when there is none, or they stay for a minute and a half.
func (f *Fetcher) CloseIdleConnections() {
	(&http.Client{Transport: f.transport.next}).CloseIdleConnections()
}

// UserAgent returns the User-Agent header of all requests.
func (f *Fetcher) UserAgent() string { return f.cfg.UserAgent }

// Fetch makes one request, which the ticket pays for.
func (f *Fetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	return f.FetchWithHeader(ctx, t, nil)
}

// FetchWithHeader is Fetch with headers of this one request, which replace those of
// Config.Headers. The caller sees to it that extra holds none that the crawl itself sets.
func (f *Fetcher) FetchWithHeader(ctx context.Context, t crawler.Ticket, extra http.Header) (*decorum.Response, error) {
	if t.URL().IsZero() {
		return nil, t.Redeem("") // refused: it is for no URL
	}
	trip := &roundTrip{ticket: t}
	defer func() { // also if a decoder panics
		if !trip.ticketHoldsShare {
			trip.memoryShare.Close()
		}
	}()
	if err := f.transport.openMemoryShareAndReserve(ctx, trip); err != nil {
		return nil, crawler.NewFetchError(t, err)
	}
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.Timeout, timeoutError{"whole answer", f.cfg.Timeout})
	defer cancel()
	if f.cfg.CaptureExchanges {
		trip.recorder = newWireRecorder(ctx, &trip.memoryShare, min(t.BodyLimit(f.cfg.MaxBody), f.cfg.maxBufferableBody()))
	}
	ctx, trip.cancelRequest = context.WithCancelCause(ctx)
	defer trip.cancelRequest(nil)
	trip.ctx = ctx
	req, err := trip.newRequest(ctx)
	if err != nil {
		return nil, &decorum.Error{Op: "fetch", URL: t.URL().String(), Kind: decorum.Invalid, Err: err}
	}
	req.Header = f.requestHeader(t, extra)
	err = f.transport.performVisit(req, trip)
	var exchange *decorum.RawExchange
	if trip.recorder != nil {
		exchange = trip.recorder.stopAndTakeExchange(trip.truncation(ctx, err))
	}
	memoryErr := trip.memoryShare.Err()
	if memoryErr == nil { // else the visit is made again, and nothing of this one is archived
		t.SetExchange(exchange)
		trip.retainBodyMemory()
		if err == nil {
			return trip.response, nil
		}
	}
	return nil, crawler.NewFetchError(t, noResponseCause(ctx, outer, err, memoryErr))
}

// noResponseCause returns why a visit has no answer. err comes from net/http or from the
// reading of the body; full is the error of a visit that got no memory; ctx and outer
// are the visit's context with and without its time limit.
func noResponseCause(ctx, outer context.Context, err, memoryErr error) error {
	if memoryErr != nil && outer.Err() == nil {
		return memoryErr // the visit's time limit may have passed while it waited for memory
	}
	return cmp.Or(context.Cause(ctx), err)
}

// requestHeader returns the header of a request, with extra. It asks for
// the page only if that is no longer as it was at the last visit.
func (f *Fetcher) requestHeader(t crawler.Ticket, extra http.Header) http.Header {
	h := make(http.Header, len(f.cfg.Headers)+len(extra)+6)
	h["Accept"] = []string{"*/*"}
	maps.Copy(h, f.cfg.Headers)
	maps.Copy(h, extra)
	h["User-Agent"] = []string{f.cfg.UserAgent}
	h["Accept-Encoding"] = []string{acceptEncoding}
	if t.Request().MethodOrGet() == http.MethodPost && h["Content-Type"] == nil {
		h["Content-Type"] = []string{"application/x-www-form-urlencoded"} // as colly has it
	}
	if f.cfg.From != "" {
		h["From"] = []string{f.cfg.From}
	}
	etag, modified := t.Validators()
	if etag != "" {
		h["If-None-Match"] = []string{etag}
	}
	if modified != "" {
		h["If-Modified-Since"] = []string{modified}
	}
	return h
}
