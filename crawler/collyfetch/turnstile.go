package collyfetch

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
)

// A passage is one visit on its way through colly: the ticket going in, the
// response coming out.
type passage struct {
	ticket    crawler.Ticket
	response  *decorum.Response
	addr      netip.AddrPort
	connected bool
	refused   error // why nothing may be sent over the connection
}

type passageKey struct{}

// A turnstile is the one way out: an http.RoundTripper that lets a request
// pass only with a ticket for exactly its URL. It reads the body itself, so
// that the response has the true end of the transfer, says whether it was cut,
// and holds the bytes as they came.
type turnstile struct {
	next http.RoundTripper
	cfg  Config
}

// RoundTrip implements http.RoundTripper. What it returns to colly has no
// body: the passage has it.
func (t *turnstile) RoundTrip(req *http.Request) (*http.Response, error) {
	p, _ := req.Context().Value(passageKey{}).(*passage)
	if p == nil {
		p = &passage{} // its zero ticket is refused
	}
	own, err := url.Parse(p.ticket.URL().String())
	if err != nil {
		return nil, err
	}
	shown := req.URL.String()
	if shown == own.String() {
		shown = p.ticket.URL().String() // net/url writes some characters otherwise
	}
	if err := p.ticket.Use(shown); err != nil {
		return nil, err
	}
	req = outgoing(req, own, p)
	start := time.Now()
	res, err := t.next.RoundTrip(req)
	switch {
	case p.refused != nil && res != nil:
		return nil, errors.Join(p.refused, res.Body.Close())
	case p.refused != nil:
		return nil, p.refused
	case err != nil:
		return nil, err
	}
	defer res.Body.Close()
	body, truncated, err := t.read(res, p.ticket)
	if err != nil {
		return nil, err
	}
	p.response = &decorum.Response{
		URL: p.ticket.URL(), Status: res.StatusCode, Header: res.Header,
		Body: body, Truncated: truncated, Addr: p.addr, Start: start, End: time.Now(),
	}
	return &http.Response{
		Status: res.Status, StatusCode: res.StatusCode, Proto: res.Proto, Header: res.Header,
		Body: http.NoBody, Request: req, Uncompressed: true, // or colly would unpack it again
	}, nil
}

// outgoing returns the request to u, the ticket's URL, with the server's
// address noted in p.
//
// On its own net/http repeats a GET when a connection that was kept open
// breaks, which is a visit that nobody permitted. So the second connection that
// it takes for a passage is closed before anything is sent. Over HTTP/2 it
// repeats only what the server has said it did not look at. And a connection to
// an address that must not be visited now is closed as well: the dialler lets
// none through, but one that was kept open did not come by it.
func outgoing(req *http.Request, u *url.URL, p *passage) *http.Request {
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if p.connected && !overHTTP2(info.Conn) {
			info.Conn.Close()
			return
		}
		p.connected = true
		addr, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String())
		if err != nil {
			return // no address that hosts could share
		}
		p.addr = addr
		if p.refused = p.ticket.Connect(addr.Addr()); p.refused != nil {
			info.Conn.Close()
		}
	}}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	req.URL, req.Host = u, u.Host
	req.Header = conditional(req.Header, p.ticket)
	return req
}

// conditional returns the header of a request that asks for the page only if it
// is no longer as it was at the last visit.
func conditional(h http.Header, t crawler.Ticket) http.Header {
	etag, modified := t.Validators()
	if etag == "" && modified == "" {
		return h
	}
	h = h.Clone()
	if etag != "" {
		h.Set("If-None-Match", etag)
	}
	if modified != "" {
		h.Set("If-Modified-Since", modified)
	}
	return h
}

func overHTTP2(c net.Conn) bool {
	t, ok := c.(*tls.Conn)
	return ok && t.ConnectionState().NegotiatedProtocol == "h2"
}

// read returns the body as far as it is wanted.
func (t *turnstile) read(res *http.Response, ticket crawler.Ticket) (body []byte, truncated bool, err error) {
	limit := ticket.Limit(t.cfg.MaxBody)
	if res.StatusCode/100 == 2 && !ticket.Wants(res.Header.Get("Content-Type"), t.cfg.ContentTypes) {
		return nil, true, nil // what is no page (a redirect, an error) is read
	}
	if n := res.ContentLength; n > 0 && n <= limit {
		body = make([]byte, 0, n+bytes.MinRead)
	}
	buf := bytes.NewBuffer(body)
	n, err := io.Copy(buf, io.LimitReader(res.Body, limit+1))
	switch {
	case err != nil:
		return nil, false, err
	case n > limit:
		return buf.Bytes()[:limit], true, nil
	}
	return buf.Bytes(), false, nil
}
