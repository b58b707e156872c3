package collyfetch

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
)

// A passage is one visit on its way out: the ticket going in, the response coming
// back.
type passage struct {
	ticket   crawler.Ticket
	response *decorum.Response
	addr     netip.AddrPort          // of the server
	proxied  bool                    // it is not at the other end of conn
	conn     net.Conn                // that the request was sent over
	breakOff context.CancelCauseFunc // before anything more is sent
	tape     *tape                   // nil: the exchange is not kept
	share    bodymem.Share           // of the memory for bodies
	held     bool                    // the ticket holds share until the visit is over
	spool    *bodymem.Spool          // the body of a sitemap; nil: it is in response
}

type passageKey struct{}

// A turnstile is the one way out: it lets a request pass only with a ticket, for
// the ticket's URL. It reads the body itself, so that the response has the true end
// of the transfer, says whether it was cut, and holds the bytes as they came.
type turnstile struct {
	next     http.RoundTripper
	network  *network // of next; nil: it is not ours
	cfg      Config
	decoders *decoders
	spare    sync.Pool // of buffers, for bodies whose length is not known before
}

// pass makes the visit that the ticket pays for, by req, which is the passage's own.
func (t *turnstile) pass(req *http.Request, p *passage) (err error) {
	if err := p.ticket.Redeem(p.ticket.URL().String()); err != nil {
		return err
	}
	if t.network != nil {
		if err := RefusePort(p.ticket.URL().Origin(), t.cfg.ConnectTo); err != nil {
			return err
		}
	}
	ctx := req.Context()
	if p.proxied = t.network != nil && t.cfg.Proxy != nil; p.proxied {
		if p.addr, err = t.network.admit(ctx, p.ticket, req.URL); err != nil {
			return err
		}
	}
	cookies := t.cfg.Cookies
	if p.ticket.IsPrerequisite() {
		cookies = nil
	}
	if cookies != nil {
		if err := cookies.show(ctx, req); err != nil {
			return err
		}
	}
	if t.cfg.Signer != nil {
		t.cfg.Signer.Sign(req.Header, req.URL.Host)
	}
	res, err := t.exchange(req, p)
	if err != nil {
		if err = t.explain(err); context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		p.hangUp(err)
		return err
	}
	if cookies != nil {
		cookies.take(ctx, req.URL, res)
	}
	return nil
}

// exchange sends the request and reads the answer into p.
func (t *turnstile) exchange(req *http.Request, p *passage) (*http.Response, error) {
	if t.network == nil { // nobody tells of its connections
		if err := p.ticket.Send(req.Context()); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	stop := t.awaitHead(p)
	res, err := t.next.RoundTrip(req)
	stop()
	defer p.open()
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if err := req.Context().Err(); err != nil {
		return nil, err // it came over a connection that was refused
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return nil, errUpgrade // the body is the connection itself, which Close closes
	}
	if res.StatusCode < 100 {
		return nil, errStatus
	}
	defer p.closeAfter(req.Context(), res)()
	if p.proxied && res.StatusCode == http.StatusProxyAuthRequired {
		return nil, errProxyAuth
	}
	body, truncated, err := t.read(req.Context(), res, p)
	if err != nil {
		return nil, err
	}
	p.response = &decorum.Response{
		URL: p.ticket.URL(), Status: res.StatusCode, Header: res.Header,
		Body: body, Truncated: truncated, Addr: p.addr, Start: start, End: time.Now(),
	}
	return res, nil
}

// closeAfter closes the passage's connection when ctx is done, unless stop is called
// first. A read of the body then ends even if the reader ignores ctx. Over HTTP/2,
// where other visits may use the connection, net/http resets the stream when ctx is
// done.
func (p *passage) closeAfter(ctx context.Context, res *http.Response) (stop func() bool) {
	if p.conn == nil || res.Body == http.NoBody || overHTTP2(p.conn) {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { p.conn.Close() })
}

// awaitHead breaks the passage off if the header of the answer is late, until
// stop is called.
func (t *turnstile) awaitHead(p *passage) (stop func()) {
	limit := t.cfg.FirstByte
	if limit >= t.cfg.Timeout {
		return func() {} // the end of the visit comes first
	}
	timer := time.AfterFunc(limit, func() { p.breakOff(slow{"answer", limit}) })
	return func() { timer.Stop() }
}

// errScheme refuses what there is no fetcher for (LOC-18).
var errScheme = errors.New("only http and https are fetched")

// request returns the request for the ticket's URL, with the server's address noted
// in p. It is an error if net/http cannot send one: of a scheme that is not http, or
// with a stray percent sign in the path, which hardly a server would take.
//
// On its own net/http repeats a GET when a connection that was kept open
// breaks, and over HTTP/2 when the server refuses the stream or goes away,
// which is a visit that nobody permitted. So the second connection that it
// takes for a passage, be it the same one, ends the passage before anything is
// sent. And a connection to an address that must not be visited now is refused
// as well: the dialler lets none through, but one that was kept open did not
// come by it.
func (p *passage) request(ctx context.Context) (*http.Request, error) {
	u, how := p.ticket.URL(), p.ticket.Request()
	if !u.Origin().IsHTTP() {
		return nil, errScheme
	}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if p.conn != nil {
			p.refuse(info.Conn, errBroken)
			return
		}
		err := p.connect(info.Conn)
		if err == nil {
			err = p.ticket.Send(ctx)
		}
		if err != nil {
			p.refuse(info.Conn, err)
		}
	}}
	ctx = httptrace.WithClientTrace(context.WithValue(ctx, passageKey{}, p), trace)
	req, err := http.NewRequestWithContext(ctx, how.Name(), u.String(), reader(how))
	if err == nil {
		keepPath(req.URL)
	}
	return req, err
}

// keepPath has the path of u sent as it is. Where it holds a character that net/url
// escapes, such as |, net/url would write all of it anew, and what was escaped before,
// such as %2F, would lead to another page, of which robots.txt was not asked.
func keepPath(u *url.URL) {
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

// connect notes the connection of the passage, and returns why nothing may be sent
// over it.
func (p *passage) connect(conn net.Conn) error {
	p.conn = conn
	p.shut()
	if p.proxied {
		return nil // it leads to the proxy, and the host has been asked about
	}
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	startRecording(conn, p.tape, addr)
	if err != nil {
		return nil // no address that hosts could share
	}
	p.addr = addr
	return p.ticket.Connect(addr.Addr())
}

// refuse ends the passage before anything is sent over conn. Over HTTP/2 the
// context is asked for that just before the header is written; there conn may
// carry other visits to the host, and stays open.
func (p *passage) refuse(conn net.Conn, why error) {
	p.breakOff(why)
	if !overHTTP2(conn) {
		conn.Close()
	}
}

// hangUp closes an HTTP/2 connection on which an answer did not come in time, or
// was none, as net/http does over HTTP/1.1: it may be dead, or full of what nobody
// waits for, and the next visit would fail on it as well.
func (p *passage) hangUp(why error) {
	late := slow{}
	if p.conn != nil && (errors.As(why, &late) || errors.Is(why, decorum.Malformed)) && overHTTP2(p.conn) {
		p.conn.Close()
	}
}

func overHTTP2(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// lent is the largest size of a buffer that is used again for bodies.
const lent = 256 << 10

// read returns the wanted part of the body, decoded. It puts the body of a sitemap into
// the passage's spool.
func (t *turnstile) read(ctx context.Context, res *http.Response, p *passage) (body []byte, truncated bool, err error) {
	ticket := p.ticket
	if ticket.Request().Name() == http.MethodHead {
		return nil, false, nil // its header speaks of a body that is not there
	}
	if res.StatusCode/100 == 2 && !ticket.Wants(res.Header.Get("Content-Type"), t.cfg.ContentTypes) {
		return nil, true, nil // what is no page (a redirect, an error) is read
	}
	reserve := func(n int64) error { return p.share.Reserve(ctx, n) }
	r, err := t.decoders.open(res, ticket.Limit(t.cfg.MaxBody), reserve)
	if err != nil {
		return nil, false, bodyError(err, res, 0)
	}
	defer r.Close()
	if ticket.Streams() {
		n, truncated, err := t.readSpool(ctx, r, p)
		if err != nil {
			return nil, false, bodyError(err, res, n)
		}
		return nil, truncated, nil
	}
	return t.readWhole(ctx, r, res, p)
}

// readWhole returns a body in memory. A body of known length gets a buffer of its own;
// others are read into a shared buffer, and copied if they are short.
func (t *turnstile) readWhole(
	ctx context.Context, r io.Reader, res *http.Response, p *passage,
) (body []byte, truncated bool, err error) {
	limit := t.bodyLimit(p.ticket)
	size := promised(res, limit)
	if size > 0 {
		buf := make([]byte, 0, min(size+bytes.MinRead, lent, limit))
		body, truncated, err = p.share.ReadAll(ctx, r, limit, size, buf)
		return wholeBody(body, truncated, err, res)
	}
	buf, ok := t.spare.Get().(*[]byte)
	if !ok {
		buf = new(make([]byte, 0, 64<<10))
	}
	body, truncated, err = p.share.ReadAll(ctx, r, limit, 0, *buf)
	if body != nil && cap(body) <= lent { // a body that outgrew the buffer stays in its own
		*buf = body[:0]
		body = bytes.Clone(body)
	}
	t.spare.Put(buf)
	return wholeBody(body, truncated, err, res)
}

// wholeBody returns what readWhole does: no part of a body that did not come whole.
func wholeBody(body []byte, truncated bool, err error, res *http.Response) ([]byte, bool, error) {
	if err != nil {
		return nil, false, bodyError(err, res, int64(len(body)))
	}
	return body, truncated, nil
}
