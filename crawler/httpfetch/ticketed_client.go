package httpfetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/http1"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
)

// A roundTrip is the state of one visit while its request is sent and its response is read.
type roundTrip struct {
	ticket        crawler.Ticket
	response      *decorum.Response     // set once the response has been read
	serverAddr    netip.AddrPort        // server's address; zero if unknown, as behind some proxies
	viaProxy      bool                  // conn leads to the proxy, not to serverAddr
	conn          net.Conn              // carries the request; nil until the transport has a connection
	connWasReused bool                  // conn was open before the visit
	connUse       crawler.ConnectionUse // how conn came to be
	// dialed was opened for the visit. It may carry the request of another visit instead, or fail to set
	// up TLS. Nil until it is connected.
	dialed           atomic.Pointer[leaseCheckedConn]
	encodedBodyLen   int64                    // bytes of the response's body before it was decoded; 0: it was not
	responseBegan    atomic.Bool              // the first byte of the response has arrived
	ctx              context.Context          // context of the request; once it is done, nothing more is sent
	cancelRequest    context.CancelCauseFunc  // cancels ctx
	recorder         *wireRecorder            // nil: the exchange is not kept
	memoryShare      bodymem.VisitShare       // the visit's share of the memory for bodies
	ticketHoldsShare bool                     // the ticket keeps memoryShare until the visit is over
	bodySpool        *bodymem.CompressedSpool // body of a sitemap; nil: the body is in response
}

// roundTripContextKey is the context key of the *roundTrip that a connection is dialled for.
type roundTripContextKey struct{}

// A ticketedClient sends the requests of a Fetcher: each needs a ticket, and goes to the ticket's
// URL. It reads the body itself, so that the response has the true end of the transfer, says
// whether the body was cut, and holds the bytes as they arrived.
type ticketedClient struct {
	next       http.RoundTripper
	dialer     *crawlDialer // dialer of next; nil: next is Config.Transport
	cfg        Config
	decoders   *decoderPools
	bufferPool sync.Pool // of *[]byte, for bodies of unknown length
}

// performVisit redeems the ticket of p, sends req for the ticket's URL, and reads the response into
// p. If the request's context ended, the error is the cause of that.
func (t *ticketedClient) performVisit(req *http.Request, p *roundTrip) (err error) {
	if err := p.ticket.Redeem(p.ticket.URL().String()); err != nil {
		return err
	}
	if t.dialer != nil {
		if err := dialrules.CheckPort(p.ticket.URL().Origin(), t.dialer.connectToRules); err != nil {
			return err
		}
	}
	// Behind a proxy the socket leads to the proxy, so the host's address is checked here.
	ctx := req.Context()
	if p.viaProxy = t.dialer != nil && t.dialer.proxy != nil; p.viaProxy {
		if p.serverAddr, err = t.dialer.checkAndClaimProxiedHost(ctx, p.ticket, req.URL); err != nil {
			return err
		}
		if req.URL.Scheme == "http" { // https goes through a tunnel
			makeOpaqueAbsolute(req.URL)
		}
	}
	cookies := t.cfg.Cookies
	if !p.ticket.Kind().IsPage() {
		cookies = nil
	}
	if cookies != nil {
		if err := cookies.addToRequest(ctx, req); err != nil {
			return err
		}
	}
	if t.cfg.Signer != nil {
		t.cfg.Signer.Sign(req.Header, req.URL.Host)
	}
	setValidators(req.Header, p.ticket)
	res, err := t.sendAndRead(req, p)
	if err != nil {
		// The reason why the visit was ended says more than the error of a read or write.
		err = t.translateRequestError(err)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if isBrokenConn(err) {
			err = p.markIfStaleConn(err)
		}
		p.closeBrokenHTTP2Conn(err)
		return err
	}
	if cookies != nil {
		cookies.storeCookies(ctx, req.URL, res)
	}
	return nil
}

// setValidators adds to h, which has all other headers of the request, the validators of the last visit.
// The request is then conditional: the server sends the page only if it has changed since.
func setValidators(h http.Header, t crawler.Ticket) {
	etag, modified := t.Validators(h)
	if etag != "" {
		h["If-None-Match"] = []string{etag}
	}
	if modified != "" {
		h["If-Modified-Since"] = []string{modified}
	}
}

// sendAndRead sends req and reads the response into p.response.
func (t *ticketedClient) sendAndRead(req *http.Request, p *roundTrip) (*http.Response, error) {
	if t.dialer == nil { // a transport from Config does not call GotConn, which records the send
		if err := p.ticket.RecordSend(req.Context()); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	stop := t.startHeaderTimeout(p)
	res, err := t.next.RoundTrip(req)
	stop()
	defer p.disableLeaseCheck()
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if err := req.Context().Err(); err != nil {
		return nil, err // the response came over a connection that was refused
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return nil, errUnexpectedUpgrade // the body is the connection itself, which Close closes
	}
	if res.StatusCode < 100 {
		return nil, errInvalidStatus
	}
	// From here on the end of the visit ends the reading, whatever the reader does.
	defer p.closeConnOnCancel(req.Context(), res)()
	if p.viaProxy && res.StatusCode == http.StatusProxyAuthRequired {
		return nil, errProxyAuth
	}
	body, truncated, err := t.readBody(req.Context(), res, p)
	if err != nil {
		return nil, err
	}
	p.response = &decorum.Response{
		URL: p.ticket.URL(), Status: res.StatusCode, Header: res.Header,
		Body: body, BodyLimitExceeded: truncated, EncodedBodyLen: p.encodedBodyLen,
		Addr: p.serverAddr, Start: start, End: time.Now(),
	}
	return res, nil
}

// closeConnOnCancel closes the connection of p when ctx is done, unless stop is called first. A
// read of the body then ends even if the reader ignores ctx. http1 closes the connection by itself. Over
// HTTP/2, where other visits may use the connection, net/http resets the stream when ctx is done.
func (p *roundTrip) closeConnOnCancel(ctx context.Context, res *http.Response) (stop func() bool) {
	_, isHTTP1 := p.conn.(*http1.Conn)
	if p.conn == nil || res.Body == http.NoBody || isHTTP1 || isHTTP2Conn(p.conn) {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { p.conn.Close() })
}

// startHeaderTimeout cancels the request if the header of the response does not arrive within
// FirstByteTimeout, unless stop is called first.
func (t *ticketedClient) startHeaderTimeout(p *roundTrip) (stop func()) {
	limit := t.cfg.FirstByteTimeout
	if limit >= t.cfg.Timeout {
		return func() {} // the time limit of the visit comes first
	}
	timer := time.AfterFunc(limit, func() { p.cancelRequest(timeoutError{"answer", limit}) })
	return func() { timer.Stop() }
}

// errUnsupportedScheme is the error of a URL whose scheme this package does not fetch (LOC-18).
var errUnsupportedScheme = errors.New("only http and https are fetched")

// newRequest returns the request for the ticket's URL. It sets p.conn and p.serverAddr when the transport
// has a connection. It returns an error if the request cannot be sent, because the scheme is not http or
// https for example.
//
// net/http repeats a GET by itself when a kept-open connection breaks, and over HTTP/2 when the
// server refuses the stream or goes away. That would be a second visit for one ticket. Therefore
// the second connection that net/http takes for a round trip, even if it is the same connection
// again, cancels the request before anything is sent. A connection to an address that must not be
// visited now is refused here as well: the dialer refuses it for new connections, but a kept-open
// connection does not pass through the dialer.
func (p *roundTrip) newRequest(ctx context.Context, n *crawlDialer) (*http.Request, error) {
	u, request := p.ticket.URL(), p.ticket.Request()
	if !u.Origin().IsHTTP() {
		return nil, errUnsupportedScheme
	}
	gotConn := func(info httptrace.GotConnInfo) {
		if p.conn != nil {
			// net/http sends the request again.
			p.refuseConn(info.Conn, p.markIfStaleConn(errConnBroken))
			return
		}
		p.connWasReused = info.Reused || info.WasIdle
		kept := connInside[*keptConn](info.Conn)
		if p.connWasReused && kept != nil && !n.mayReuse(ctx, kept, p) {
			info.Conn.Close() // nothing is sent over it: the transport takes another connection
			return
		}
		p.connUse = newConnUse(info)
		kept.setOutermost(info.Conn)
		err := p.attachAndCheckConn(info.Conn)
		if err == nil {
			err = p.ticket.RecordSend(ctx)
		}
		if err != nil {
			p.refuseConn(info.Conn, err)
		}
	}
	// A failed attempt to open another connection is not the end of the kept-open one that GotConn refused.
	getConn := func(string) { p.connWasReused = p.connWasReused && p.conn != nil }
	trace := &httptrace.ClientTrace{GetConn: getConn, GotConn: gotConn,
		GotFirstResponseByte: func() { p.responseBegan.Store(true) }}
	ctx = httptrace.WithClientTrace(context.WithValue(ctx, roundTripContextKey{}, p), trace)
	req, err := http.NewRequestWithContext(ctx, request.MethodOrGet(), u.Origin().String(), request.BodyReader())
	if err != nil {
		return nil, err
	}
	if target, err := url.Parse(u.String()); err == nil {
		preservePathEscaping(target)
		req.URL = target
	} else {
		setUnparsablePath(req.URL, u.PathAndQuery())
	}
	return req, nil
}

// newConnUse returns how the connection of info came to be.
func newConnUse(info httptrace.GotConnInfo) crawler.ConnectionUse {
	use := crawler.ConnectionUse{Reused: info.Reused, Opened: !info.Reused}
	if info.Reused {
		return use
	}
	conn := dialedConn(info.Conn)
	if recorded, ok := conn.(*recordedConn); ok {
		conn = recorded.Conn
	}
	if t, ok := conn.(*tls.Conn); ok {
		use.ResumedHandshake = t.ConnectionState().DidResume
		use.FullHandshake = !use.ResumedHandshake
	}
	return use
}

// setUnparsablePath makes net/http send a path that net/url refuses, because of a percent sign that
// begins no escape: as it is, as browsers do.
func setUnparsablePath(target *url.URL, pathAndQuery string) {
	path, query, hasQuery := strings.Cut(pathAndQuery, "?")
	target.Path, target.Opaque = path, path // net/http sends Opaque, and cookies have Path
	target.RawQuery, target.ForceQuery = query, hasQuery
	if strings.HasPrefix(path, "//") { // would begin with a host
		makeOpaqueAbsolute(target)
	}
}

// makeOpaqueAbsolute makes net/http send scheme and host before the path that setUnparsablePath has set,
// if there is one: servers accept that, and proxies need it (RFC 9112 §3.2.2).
func makeOpaqueAbsolute(target *url.URL) {
	if target.Opaque != "" {
		target.Opaque = "//" + target.Host + target.Path
	}
}

// markIfStaleConn returns err, the end of the connection of p, as a crawler.StaleConnError if the
// connection was a kept-open one that ended before the first byte of the response.
func (p *roundTrip) markIfStaleConn(err error) error {
	if p.connWasReused && !p.responseBegan.Load() {
		return &crawler.StaleConnError{Err: err}
	}
	return err
}

// preservePathEscaping makes net/http send the path of u unchanged. If the path has a character
// that net/url escapes, such as |, net/url would write the whole path again, and an escaped
// character such as %2F would become another path, which robots.txt was not checked for.
func preservePathEscaping(u *url.URL) {
	if u.RawPath == "" || u.EscapedPath() == u.RawPath {
		return
	}
	var b strings.Builder
	for _, c := range []byte(u.RawPath) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("-_.~!$&'()*+,;=:@[]/%", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	u.RawPath = b.String()
}

// attachAndCheckConn makes conn the connection of p. It returns an error if nothing may be sent over
// conn for this visit.
func (p *roundTrip) attachAndCheckConn(conn net.Conn) error {
	p.conn = conn
	p.enableLeaseCheck()
	if p.viaProxy {
		return nil // conn leads to the proxy; performVisit has checked the host
	}
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	// A connection whose bytes are not those of the exchange, such as the encrypted bytes of TLS, is
	// not a recordedConn.
	if c, ok := dialedConn(conn).(*recordedConn); ok && p.recorder != nil {
		p.recorder.exchange.Addr = addr
		c.recorder.Store(p.recorder)
	}
	if err != nil {
		return nil // conn has no IP address that other hosts could share
	}
	p.serverAddr = addr
	return p.ticket.ClaimServerAddr(addr.Addr())
}

// refuseConn cancels the request with the cause why before anything is sent over conn. Over HTTP/2,
// net/http checks the context just before it writes the header; conn may carry other visits to the
// host there, so it stays open.
func (p *roundTrip) refuseConn(conn net.Conn, why error) {
	p.cancelRequest(why)
	if !isHTTP2Conn(conn) {
		conn.Close()
	}
}

// closeBrokenHTTP2Conn closes an HTTP/2 connection whose response was late or malformed, as net/http
// does over HTTP/1.1. The connection may be dead, or full of data that no visit reads, and the
// next visit would fail on it as well.
func (p *roundTrip) closeBrokenHTTP2Conn(why error) {
	isBroken := errors.As(why, new(timeoutError)) || errors.Is(why, decorum.Malformed)
	if p.conn != nil && isBroken && isHTTP2Conn(p.conn) {
		p.conn.Close()
	}
}

func isHTTP2Conn(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// maxPooledBuffer is the largest buffer, in bytes, that returns to bufferPool.
const maxPooledBuffer = 256 << 10

// readBody returns the decoded body up to its limit, and reports whether it was cut. It puts the
// body of a sitemap into p.bodySpool.
func (t *ticketedClient) readBody(ctx context.Context, res *http.Response,
	p *roundTrip) (body []byte, truncated bool, err error) {
	ticket := p.ticket
	if ticket.Request().MethodOrGet() == http.MethodHead {
		return nil, false, nil // its Content-Length is that of the body of a GET
	}
	if res.StatusCode/100 == 2 && !ticket.WantsContentType(res.Header.Get("Content-Type"), t.cfg.ContentTypes) {
		return nil, true, nil // bodies of redirects and errors are read whatever their type
	}
	reserve := func(n int64) error { return p.memoryShare.Reserve(ctx, n) }
	r, err := t.decoders.openBody(res, ticket.BodyLimit(t.cfg.MaxBody), reserve)
	if err != nil {
		return nil, false, bodyReadError(err, res, 0)
	}
	defer r.Close()
	if decoded, ok := r.(*decodedBody); ok {
		encoded := decoded.encodedReader.limitedSource
		defer func() { p.encodedBodyLen = encoded.bytesRead }()
	}
	if ticket.StreamsBody() {
		n, truncated, err := t.readSitemapIntoSpool(ctx, r, p)
		if err != nil {
			return nil, false, bodyReadError(err, res, n)
		}
		return nil, truncated, nil
	}
	return t.readIntoMemory(ctx, r, res, p)
}

// readIntoMemory returns a body in memory. If the body did not arrive whole, it returns an error and
// no body. If no one keeps the body, its buffer is that of an earlier visit. Otherwise a body of known
// length gets a buffer for itself; others are read into a pooled buffer and copied if they are short.
func (t *ticketedClient) readIntoMemory(
	ctx context.Context, r io.Reader, res *http.Response, p *roundTrip,
) (body []byte, truncated bool, err error) {
	limit := t.inMemoryBodyLimit(p.ticket)
	size := declaredBodyLength(res, limit)
	switch {
	case p.ticket.ReusesBody():
		body, truncated, err = p.memoryShare.ReadAllReusing(ctx, r, limit, size)
	case size > 0:
		buf := make([]byte, 0, min(size+bytes.MinRead, maxPooledBuffer, limit))
		body, truncated, err = p.memoryShare.ReadAll(ctx, r, limit, size, buf)
	default:
		buf, ok := t.bufferPool.Get().(*[]byte)
		if !ok {
			buf = new(make([]byte, 0, 64<<10))
		}
		body, truncated, err = p.memoryShare.ReadAll(ctx, r, limit, 0, *buf)
		if body != nil && cap(body) <= maxPooledBuffer { // a longer body keeps the buffer it grew into
			*buf = body[:0]
			body = bytes.Clone(body)
		}
		t.bufferPool.Put(buf)
	}
	if err != nil {
		return nil, false, bodyReadError(err, res, int64(len(body)))
	}
	return body, truncated, nil
}
