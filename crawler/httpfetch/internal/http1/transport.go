package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// A Transport is an http.RoundTripper. It calls the hooks GetConn, GotConn and GotFirstResponseByte of
// an httptrace.ClientTrace. If GotConn closes a connection that was idle, the Transport takes another.
// The end of a request's context closes its connection, up to the end of the response's body.
//
// The body of a response belongs to one goroutine. The connection is used again if the body was read to
// its end; otherwise Close closes the connection. The methods of a Transport are safe for concurrent use.
type Transport struct {
	// Dial opens a connection for http URLs, and DialTLS one for https URLs, which has completed its
	// handshake. addr is a host and a port.
	Dial, DialTLS func(ctx context.Context, network, addr string) (net.Conn, error)
	// IsUsable reports whether a connection that was idle is still open and has nothing to read. A
	// connection that is not is closed, and another is taken.
	IsUsable func(net.Conn) bool
	// MaxHeaderBytes bounds the header of a response, together with the interim responses (1xx) before it.
	MaxHeaderBytes int64
	// DisableKeepAlives makes each connection carry one request.
	DisableKeepAlives bool

	buffers sync.Pool // of *buffers

	mu   sync.Mutex         // guards idle
	idle map[server][]*Conn // idle connections, those used last at the end
}

// A server is what a connection leads to.
type server struct{ scheme, addr string }

// ErrHeaderTooLong is the error of a response whose header exceeds Transport.MaxHeaderBytes.
var ErrHeaderTooLong = errors.New("http1: the header of the response is too long")

// A MalformedResponseError is the error of a response that is not valid HTTP.
type MalformedResponseError struct{ Err error }

// Error returns the message of the cause.
func (e *MalformedResponseError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *MalformedResponseError) Unwrap() error { return e.Err }

// RoundTrip sends req and returns the response once its header has arrived. It implements
// http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.roundTrip(req)
	if err != nil && req.Body != nil {
		_ = req.Body.Close() // has nothing to flush
	}
	return res, err
}

func (t *Transport) roundTrip(req *http.Request) (*http.Response, error) {
	if err := CheckHeader(req.Header); err != nil {
		return nil, err
	}
	trace := httptrace.ContextClientTrace(req.Context())
	if trace == nil {
		trace = &httptrace.ClientTrace{}
	}
	c, err := t.takeConn(req.Context(), req.URL, trace)
	if err != nil {
		return nil, err
	}
	// From here to the end of the body, the connection has buffers, and the context can close it.
	x := &exchange{conn: c, req: req, stop: context.AfterFunc(req.Context(), func() { c.Close() })}
	x.buffers = t.takeBuffers()
	res, err := x.perform(trace, t.MaxHeaderBytes, t.DisableKeepAlives)
	if err != nil {
		x.end(false)
		return nil, err
	}
	return res, nil
}

// CheckHeader returns an error if h has a name or a value that is invalid. Request.Write would leave the header
// out, or send the value with spaces in place of line breaks.
func CheckHeader(h http.Header) error {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("http1: the name %q of a header is invalid", name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("http1: the value of the header %s is invalid", name) // it may be a secret
			}
		}
	}
	return nil
}

// takeConn returns a connection for a request to u: the idle one that was used last, or a new one.
func (t *Transport) takeConn(ctx context.Context, u *url.URL, trace *httptrace.ClientTrace) (*Conn, error) {
	to, dial, err := t.serverOf(u)
	if err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if trace.GetConn != nil {
			trace.GetConn(to.addr)
		}
		c := t.takeIdle(to)
		wasIdle := c != nil
		switch {
		case !wasIdle:
			dialed, err := dial(ctx, "tcp", to.addr)
			if err != nil {
				return nil, err
			}
			c = &Conn{Conn: dialed, transport: t, server: to}
		case !t.IsUsable(c):
			_ = c.Close() // the server has most likely closed it
			continue
		}
		if trace.GotConn != nil {
			trace.GotConn(httptrace.GotConnInfo{Conn: c, Reused: wasIdle, WasIdle: wasIdle})
		}
		if !wasIdle || !c.closed.Load() {
			return c, nil
		}
	}
}

// serverOf returns what u leads to, and how to connect to it.
func (t *Transport) serverOf(u *url.URL) (to server, dial func(context.Context, string, string) (net.Conn, error),
	err error) {
	port := u.Port()
	switch u.Scheme {
	case "http":
		to.scheme, dial = u.Scheme, t.Dial
		if port == "" {
			port = "80"
		}
	case "https":
		to.scheme, dial = u.Scheme, t.DialTLS
		if port == "" {
			port = "443"
		}
	default:
		return server{}, nil, fmt.Errorf("http1: the scheme %q is not supported", u.Scheme)
	}
	if u.Hostname() == "" {
		return server{}, nil, errors.New("http1: the URL has no host") // an empty address would mean this machine
	}
	to.addr = net.JoinHostPort(u.Hostname(), port)
	return to, dial, nil
}

// takeIdle returns the idle connection to a server that was used last, and nil if there is none.
func (t *Transport) takeIdle(to server) *Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	conns := t.idle[to]
	if len(conns) == 0 {
		return nil
	}
	c := conns[len(conns)-1]
	t.removeLocked(c)
	return c
}

// putIdle keeps c for the next request to its server.
func (t *Transport) putIdle(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.closed.Load() { // Close may have found c not to be idle
		return
	}
	if t.idle == nil {
		t.idle = map[server][]*Conn{}
	}
	t.idle[c.server] = append(t.idle[c.server], c)
}

// remove removes c from the idle connections, if it is one.
func (t *Transport) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.removeLocked(c)
}

// removeLocked is remove. The caller holds mu.
func (t *Transport) removeLocked(c *Conn) {
	conns := slices.DeleteFunc(t.idle[c.server], func(other *Conn) bool { return other == c })
	if len(conns) == 0 {
		delete(t.idle, c.server)
		return
	}
	t.idle[c.server] = conns
}

// CloseIdleConnections closes the connections that carry no request. http.Client calls it.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle = nil
	t.mu.Unlock()
	for _, conns := range idle {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// buffers are what a connection needs while it carries a request.
type buffers struct {
	r *bufio.Reader
	w *bufio.Writer
}

// Sizes of buffers, in bytes. Most requests fit into one buffer. Most pages arrive with one read, as far
// as they have arrived.
const (
	readBufferBytes  = 32 << 10
	writeBufferBytes = 4 << 10
)

// takeBuffers returns buffers for an exchange, which resets them.
func (t *Transport) takeBuffers() *buffers {
	b, ok := t.buffers.Get().(*buffers)
	if !ok {
		b = &buffers{bufio.NewReaderSize(nil, readBufferBytes), bufio.NewWriterSize(nil, writeBufferBytes)}
	}
	return b
}

// putBuffers returns b for the next request.
func (t *Transport) putBuffers(b *buffers) {
	b.r.Reset(nil) // keeps no connection
	b.w.Reset(nil)
	t.buffers.Put(b)
}
