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
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
)

// A roundTrip is one visit on its way out: the ticket going in, the response coming
// back.
type roundTrip struct {
	ticket           crawler.Ticket
	response         *decorum.Response
	serverAddr       netip.AddrPort           // of the server
	viaProxy         bool                     // it is not at the other end of conn
	conn             net.Conn                 // that the request was sent over
	ctx              context.Context          // of the request: once it is done, nothing more is sent
	cancelRequest    context.CancelCauseFunc  // ends ctx
	recorder         *wireRecorder            // nil: the exchange is not kept
	memoryShare      bodymem.VisitShare       // of the memory for bodies
	ticketHoldsShare bool                     // the ticket holds share until the visit is over
	bodySpool        *bodymem.CompressedSpool // the body of a sitemap; nil: it is in response
}

type roundTripContextKey struct{}

// A ticketedClient is the one way out: it lets a request pass only with a ticket, for
// the ticket's URL. It reads the body itself, so that the response has the true end
// of the transfer, says whether it was cut, and holds the bytes as they came.
type ticketedClient struct {
	next       http.RoundTripper
	dialer     *crawlDialer // of next; nil: it is not ours
	cfg        Config
	decoders   decoderPools
	bufferPool sync.Pool // of buffers, for bodies whose length is not known before
}

// performVisit redeems the ticket, sends req, which is for its URL, and reads the answer.
func (t *ticketedClient) performVisit(req *http.Request, p *roundTrip) (err error) {
	if err := p.ticket.Redeem(p.ticket.URL().String()); err != nil {
		return err
	}
	if t.dialer != nil {
		if err := dialrules.CheckPort(p.ticket.URL().Origin(), t.dialer.connectToRules); err != nil {
			return err
		}
	}
	ctx := req.Context()
	if p.viaProxy = t.dialer != nil && t.dialer.proxy != nil; p.viaProxy {
		if p.serverAddr, err = t.dialer.checkAndClaimProxiedHost(ctx, p.ticket, req.URL); err != nil {
			return err
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
	res, err := t.sendAndRead(req, p)
	if err != nil {
		if err = t.translateRequestError(err); context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		p.closeBrokenHTTP2Conn(err)
		return err
	}
	if cookies != nil {
		cookies.storeCookies(ctx, req.URL, res)
	}
	return nil
}

// sendAndRead sends the request and reads the answer into p.
func (t *ticketedClient) sendAndRead(req *http.Request, p *roundTrip) (*http.Response, error) {
	if t.dialer == nil { // its connections do not call GotConn
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
		return nil, err // it came over a connection that was refused
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return nil, errUnexpectedUpgrade // the body is the connection itself, which Close closes
	}
	if res.StatusCode < 100 {
		return nil, errInvalidStatus
	}
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
		Body: body, BodyLimitExceeded: truncated, Addr: p.serverAddr, Start: start, End: time.Now(),
	}
	return res, nil
}

// closeConnOnCancel closes the connection of p when ctx is done, unless stop is called
// first. A read of the body then ends even if the reader ignores ctx. Over HTTP/2,
// where other visits may use the connection, net/http resets the stream when ctx is
// done.
func (p *roundTrip) closeConnOnCancel(ctx context.Context, res *http.Response) (stop func() bool) {
	if p.conn == nil || res.Body == http.NoBody || isHTTP2Conn(p.conn) {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { p.conn.Close() })
}

// startHeaderTimeout cancels the request if the header of the answer is late, until
// stop is called.
func (t *ticketedClient) startHeaderTimeout(p *roundTrip) (stop func()) {
	limit := t.cfg.FirstByteTimeout
	if limit >= t.cfg.Timeout {
		return func() {} // the end of the visit comes first
	}
	timer := time.AfterFunc(limit, func() { p.cancelRequest(timeoutError{"answer", limit}) })
	return func() { timer.Stop() }
}

// errUnsupportedScheme refuses what there is no fetcher for (LOC-18).
var errUnsupportedScheme = errors.New("only http and https are fetched")

// newRequest returns the request for the ticket's URL, with the server's address noted
// in p. It is an error if net/http cannot send one: of a scheme that is not http, or
// with a stray percent sign in the path, which hardly a server would take.
//
// On its own net/http repeats a GET when a connection that was kept open
// breaks, and over HTTP/2 when the server refuses the stream or goes away,
// which would be a second visit for one ticket. So the second connection that it
// takes for a round trip, be it the same one, cancels the request before anything is
// sent. And a connection to an address that must not be visited now is refused
// as well: the dialler lets none through, but one that was kept open did not
// come by it.
func (p *roundTrip) newRequest(ctx context.Context) (*http.Request, error) {
	u, request := p.ticket.URL(), p.ticket.Request()
	if !u.Origin().IsHTTP() {
		return nil, errUnsupportedScheme
	}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if p.conn != nil {
			p.refuseConn(info.Conn, errConnBroken)
			return
		}
		err := p.attachAndCheckConn(info.Conn)
		if err == nil {
			err = p.ticket.RecordSend(ctx)
		}
		if err != nil {
			p.refuseConn(info.Conn, err)
		}
	}}
	ctx = httptrace.WithClientTrace(context.WithValue(ctx, roundTripContextKey{}, p), trace)
	req, err := http.NewRequestWithContext(ctx, request.MethodOrGet(), u.String(), request.BodyReader())
	if err == nil {
		preservePathEscaping(req.URL)
	}
	return req, err
}

// preservePathEscaping has the path of u sent as it is. Where it holds a character that net/url
// escapes, such as |, net/url would write all of it anew, and what was escaped before,
// such as %2F, would lead to another page, of which robots.txt was not asked.
func preservePathEscaping(u *url.URL) {
	if u.RawPath == "" || u.EscapedPath() == u.RawPath {
		return
	}
	var b strings.Builder
	for _, c := range []byte(u.RawPath) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~!$&'()*+,;=:@[]/%", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	u.RawPath = b.String()
}

// attachAndCheckConn notes the connection of p, and returns why nothing may be sent
// over it.
func (p *roundTrip) attachAndCheckConn(conn net.Conn) error {
	p.conn = conn
	p.enableLeaseCheck()
	if p.viaProxy {
		return nil // it leads to the proxy, and the host has been asked about
	}
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	// A connection that carries other bytes than the exchange's own, as those of TLS, is no recordedConn.
	if c, ok := conn.(*recordedConn); ok && p.recorder != nil {
		p.recorder.exchange.Addr = addr
		c.recorder.Store(p.recorder)
	}
	if err != nil {
		return nil // no address that hosts could share
	}
	p.serverAddr = addr
	return p.ticket.ClaimServerAddr(addr.Addr())
}

// refuseConn cancels the request before anything is sent over conn. Over HTTP/2 the
// context is asked for that just before the header is written; there conn may
// carry other visits to the host, and stays open.
func (p *roundTrip) refuseConn(conn net.Conn, why error) {
	p.cancelRequest(why)
	if !isHTTP2Conn(conn) {
		conn.Close()
	}
}

// closeBrokenHTTP2Conn closes an HTTP/2 connection on which an answer did not come in time, or
// was none, as net/http does over HTTP/1.1: it may be dead, or full of what nobody
// waits for, and the next visit would fail on it as well.
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

// maxPooledBuffer is the largest size of a buffer that is used again for bodies.
const maxPooledBuffer = 256 << 10

// readBody returns the wanted part of the body, decoded. It puts the body of a sitemap into
// the spool of p.
func (t *ticketedClient) readBody(ctx context.Context, res *http.Response, p *roundTrip) (body []byte, truncated bool, err error) {
	ticket := p.ticket
	if ticket.Request().MethodOrGet() == http.MethodHead {
		return nil, false, nil // its header speaks of a body that is not there
	}
	if res.StatusCode/100 == 2 && !ticket.WantsContentType(res.Header.Get("Content-Type"), t.cfg.ContentTypes) {
		return nil, true, nil // what is no page (a redirect, an error) is read
	}
	reserve := func(n int64) error { return p.memoryShare.Reserve(ctx, n) }
	r, err := t.decoders.openBody(res, ticket.BodyLimit(t.cfg.MaxBody), reserve)
	if err != nil {
		return nil, false, bodyReadError(err, res, 0)
	}
	defer r.Close()
	if ticket.StreamsBody() {
		n, truncated, err := t.readSitemapIntoSpool(ctx, r, p)
		if err != nil {
			return nil, false, bodyReadError(err, res, n)
		}
		return nil, truncated, nil
	}
	return t.readIntoMemory(ctx, r, res, p)
}

// readIntoMemory returns a body in memory, and no part of one that did not come whole. A
// body of known length gets a buffer of its own; others are read into a shared buffer, and
// copied if they are short.
func (t *ticketedClient) readIntoMemory(
	ctx context.Context, r io.Reader, res *http.Response, p *roundTrip,
) (body []byte, truncated bool, err error) {
	limit := t.inMemoryBodyLimit(p.ticket)
	if size := declaredBodyLength(res, limit); size > 0 {
		buf := make([]byte, 0, min(size+bytes.MinRead, maxPooledBuffer, limit))
		body, truncated, err = p.memoryShare.ReadAll(ctx, r, limit, size, buf)
	} else {
		buf, ok := t.bufferPool.Get().(*[]byte)
		if !ok {
			buf = new(make([]byte, 0, 64<<10))
		}
		body, truncated, err = p.memoryShare.ReadAll(ctx, r, limit, 0, *buf)
		if body != nil && cap(body) <= maxPooledBuffer { // a body that outgrew the buffer stays in its own
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
