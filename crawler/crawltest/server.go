package crawltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ServeHTTP implements http.Handler. It answers for the site that the Host header names, and with 421
// (Misdirected Request) for an unknown host. It supports only HTTP/1, because a fault breaks the
// connection.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	e, d := w.logRequestAndPrepareResponse(r, scheme, true)
	err := d.writeTo(r.Context(), rw, e)
	e.recordEnd(err != nil)
	if err != nil {
		breakConnection(rw, d.fault)
	}
}

// writeTo sends the answer up to its fault. It records the end of the exchange before it sends the
// last byte: see Exchange.End. An error means that the connection must be broken.
func (d *wireResponse) writeTo(ctx context.Context, rw http.ResponseWriter, e *exchangeRecorder) error {
	switch d.fault {
	case Hang:
		return sleepUnlessCanceled(ctx, forever)
	case Reset:
		sleepUnlessCanceled(ctx, d.headerDelay)
		return errBrokenOff
	}
	if err := sleepUnlessCanceled(ctx, d.headerDelay); err != nil {
		return err
	}
	// Send each piece of the body at its time.
	d.writeHeader(rw, e)
	began, last := time.Now(), d.bodyPieceCount()-1
	for i := range last + 1 {
		data, at := d.bodyPieceAndSendTime(i)
		if err := sleepUnlessCanceled(ctx, at-time.Since(began)); err != nil {
			return err
		}
		e.addBodyBytes(len(data))
		if i == last && !d.breaksOff() {
			e.recordEnd(d.fault == BadGzip)
		}
		if _, err := rw.Write(data); err != nil {
			return err
		}
		if err := http.NewResponseController(rw).Flush(); err != nil {
			return err
		}
	}
	return d.endBrokenBody(ctx)
}

// writeHeader records and sends the head of the answer. It records the end of an answer without a body.
func (d *wireResponse) writeHeader(rw http.ResponseWriter, e *exchangeRecorder) {
	e.recordResponseHead(*d)
	if d.bodyPieceCount() == 0 && !d.breaksOff() {
		e.recordEnd(false)
	}
	for name, values := range d.header {
		rw.Header()[name] = values
	}
	rw.WriteHeader(d.status)
}

var errBrokenOff = errors.New("broken off")

// endBrokenBody returns the error for a body that breaks off, for StallBody when the client goes away.
// It returns nil for a complete body.
func (d *wireResponse) endBrokenBody(ctx context.Context) error {
	switch {
	case d.fault == StallBody:
		return sleepUnlessCanceled(ctx, forever)
	case d.breaksOff():
		return errBrokenOff
	}
	return nil
}

// breakConnection closes the connection in the middle of an answer, with a TCP reset if the fault is
// Reset or ResetBody.
func breakConnection(rw http.ResponseWriter, f ResponseFault) {
	conn, buf, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return // the connection is closed already, or is not HTTP/1
	}
	buf.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok && (f == Reset || f == ResetBody) {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func statusCodeAndText(code int) string { return strconv.Itoa(code) + " " + http.StatusText(code) }

// A Server serves a Web on a real socket.
type Server struct {
	Addr string // the host:port on which it listens

	httpServer       *http.Server
	cancel           context.CancelFunc
	serverGoroutines sync.WaitGroup // the accept loop and every handler
	openConns        openConnections
}

// Start serves the web on the TCP address addr until Close. An empty addr is 127.0.0.1:0.
func (w *Web) Start(addr string) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return w.StartOn(listener), nil
}

// StartOn serves the web on a listener until Close, which closes the listener.
func (w *Web) StartOn(listener net.Listener) *Server {
	ctx, quit := context.WithCancel(context.Background())
	s := &Server{Addr: listener.Addr().String(), cancel: quit}
	s.httpServer = &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			s.serverGoroutines.Add(1)
			defer s.serverGoroutines.Done()
			w.ServeHTTP(rw, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState:         s.openConns.onStateChange,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.serverGoroutines.Go(func() { s.httpServer.Serve(listener) }) // ends with ErrServerClosed after Close
	return s
}

// openConnections holds the open connections of a server.
type openConnections struct {
	mu     sync.Mutex                 // guards closed
	closed map[net.Conn]chan struct{} // for each open connection, a channel that is closed with it
}

// onStateChange is the http.Server's ConnState. The server calls it for a new connection before it
// accepts the next one.
func (c *openConnections) onStateChange(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.closed == nil {
			c.closed = map[net.Conn]chan struct{}{}
		}
		c.closed[conn] = make(chan struct{})
	case http.StateHijacked, http.StateClosed: // the last exchange of the connection has ended
		close(c.closed[conn])
		delete(c.closed, conn)
	}
}

// closedChannels returns, for each connection, a channel that is closed with it.
func (c *openConnections) closedChannels() []chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.closed))
}

// AwaitDisconnects waits until the server has closed every connection made before the call.
// When it returns, every request over them is in the log and has ended.
//
// Call it after a client was killed. A busy machine may read the last requests of the client long
// after its end, and without AwaitDisconnects even after the start of the next client. They would
// look like requests of the next client (see JudgeOptions.RestartTimes).
func (s *Server) AwaitDisconnects(ctx context.Context) error {
	if err := s.awaitAccepts(ctx); err != nil {
		return fmt.Errorf("crawltest: await disconnects: %w", err)
	}
	for _, closed := range s.openConns.closedChannels() {
		select {
		case <-closed:
		case <-ctx.Done():
			return fmt.Errorf("crawltest: await disconnects: a connection is open: %w", ctx.Err())
		}
	}
	return nil
}

// awaitAccepts waits until the server has accepted every connection made before the call.
func (s *Server) awaitAccepts(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// The server accepts connections in the order in which they were made, and closes a connection
	// that sends nothing. When it has closed this one, it has accepted all earlier ones.
	err = conn.(*net.TCPConn).CloseWrite()
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Transport returns a transport that sends every request to the server, whatever host its URL names.
// The caller should close its idle connections in the end.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Addr)
		},
		MaxIdleConnsPerHost: 1,
	}
}

// Close breaks off answers that wait, hang or are sent slowly, and gives all others a second to end.
// When it returns, all handlers have ended and the log is complete.
func (s *Server) Close() error {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.httpServer.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.httpServer.Close()
	}
	s.serverGoroutines.Wait()
	return err
}
