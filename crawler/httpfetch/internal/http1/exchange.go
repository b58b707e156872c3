package http1

import (
	"cmp"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// A Conn is a connection of a Transport.
type Conn struct {
	net.Conn
	transport *Transport
	server    server
	closed    atomic.Bool
}

// NetConn returns the connection that was dialled, as tls.Conn.NetConn does.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Close is part of net.Conn. The connection is then no longer used.
func (c *Conn) Close() error {
	c.closed.Store(true)
	c.transport.remove(c)
	return c.Conn.Close()
}

// An exchange is a request and its response, on a connection that carries no other. It belongs to one
// goroutine.
type exchange struct {
	conn    *Conn
	buffers *buffers // nil once the exchange has ended
	req     *http.Request
	stop    func() bool // stops the closing of conn by the context of req

	writeErr        error // the error of a write to conn
	headerBytesLeft int64 // bytes that may still be read; no limit after the header
	readErr         error // the error that ended the reading of conn

	body     io.ReadCloser // of the response
	bodyErr  error         // what Read returns after the end of the exchange
	keepConn bool          // another request may follow on conn
}

// perform sends the request and reads the header of the response, whose body ends the exchange.
func (x *exchange) perform(trace *httptrace.ClientTrace, maxHeaderBytes int64, close bool) (*http.Response, error) {
	req := x.req
	if close && !req.Close {
		req = new(http.Request)
		*req = *x.req
		req.Close = true
	}
	sendErr := x.send(req)
	if sendErr != nil && !isEndOfConn(sendErr) {
		return nil, sendErr
	}
	res, err := x.readHeader(trace, maxHeaderBytes)
	if err != nil {
		return nil, cmp.Or(sendErr, err)
	}
	x.keepConn = sendErr == nil && !res.Close && !req.Close && res.StatusCode >= 200
	if res.Body == http.NoBody {
		x.end(x.keepConn)
		return res, nil
	}
	x.body, res.Body = res.Body, x
	return res, nil
}

// send writes the request to the connection.
func (x *exchange) send(req *http.Request) error {
	x.buffers.w.Reset((*connWriter)(x))
	err := req.Write(x.buffers.w)
	if err == nil {
		err = x.buffers.w.Flush()
	}
	return cmp.Or(x.writeErr, err) // Request.Write hides the type of an error that ends the writing of a body
}

// A connWriter writes to the connection of an exchange.
type connWriter exchange

// Write implements io.Writer.
func (w *connWriter) Write(p []byte) (int, error) {
	n, err := w.conn.Write(p)
	if err != nil {
		w.writeErr = err
	}
	return n, err
}

// isEndOfConn reports whether err, of a write, says that the server has closed the connection. The server may
// have sent a response before, to a request whose body it did not want (RFC 9112, section 9.5).
func isEndOfConn(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// readHeader returns the response without its body, after it has skipped interim responses.
func (x *exchange) readHeader(trace *httptrace.ClientTrace, limit int64) (*http.Response, error) {
	x.headerBytesLeft = limit
	x.buffers.r.Reset((*connReader)(x))
	if _, err := x.buffers.r.Peek(1); err != nil {
		return nil, err
	}
	if trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	for {
		res, err := http.ReadResponse(x.buffers.r, x.req)
		switch {
		case x.readErr == ErrHeaderTooLong && err != nil:
			return nil, ErrHeaderTooLong
		case x.readErr != nil && (err == io.ErrUnexpectedEOF || errors.Is(err, x.readErr)):
			return nil, err // io.ErrUnexpectedEOF if x.readErr is io.EOF
		case err != nil:
			return nil, &MalformedResponseError{err}
		}
		if res.StatusCode >= 200 || res.StatusCode < 100 || res.StatusCode == http.StatusSwitchingProtocols {
			x.headerBytesLeft = math.MaxInt64
			return res, nil
		}
	}
}

// A connReader reads the connection of an exchange, up to the limit of the header.
type connReader exchange

// Read implements io.Reader.
func (r *connReader) Read(p []byte) (int, error) {
	if r.headerBytesLeft <= 0 {
		r.readErr = ErrHeaderTooLong
		return 0, r.readErr
	}
	n, err := r.conn.Read(p[:min(int64(len(p)), r.headerBytesLeft)])
	r.headerBytesLeft -= int64(n)
	if err != nil {
		r.readErr = err
	}
	return n, err
}

// errBodyClosed is the error of a read from a body after Close.
var errBodyClosed = errors.New("http1: read of a body after Close")

// Read reads the body of the response. It implements io.Reader.
func (x *exchange) Read(p []byte) (int, error) {
	if x.buffers == nil {
		return 0, x.bodyErr
	}
	n, err := x.body.Read(p)
	if err != nil {
		x.bodyErr = err
		x.end(err == io.EOF && x.keepConn)
	}
	return n, err
}

// Close ends the exchange. It implements io.Closer.
func (x *exchange) Close() error {
	if x.buffers != nil {
		x.bodyErr = errBodyClosed
		x.end(false)
	}
	return nil
}

// end ends the exchange, and keeps its connection for another request if the caller wants that and
// neither data nor the end of the connection has come with the response. A second call does nothing.
func (x *exchange) end(keepConn bool) {
	if x.buffers == nil {
		return
	}
	keepConn = keepConn && x.buffers.r.Buffered() == 0 && x.readErr == nil
	x.conn.transport.putBuffers(x.buffers)
	x.buffers = nil
	if x.stop() && keepConn {
		x.conn.transport.putIdle(x.conn)
		return
	}
	_ = x.conn.Close() // whatever mattered of it was read
}
