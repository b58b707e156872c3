package crawltest

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// ServeHTTP answers a request by its Host header. It is good for HTTP/1 only:
// a fault breaks the connection. A host that the web does not have is answered
// with 421 (Misdirected Request).
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	e, d := w.begin(r, scheme, true)
	err := d.write(r.Context(), rw, e)
	e.end(err != nil)
	if err != nil {
		breakOff(rw, d.fault)
	}
}

// write sends the answer up to its fault. It enters the end of the exchange
// before the last byte is out: see Exchange.End.
func (d *delivery) write(ctx context.Context, rw http.ResponseWriter, e *entry) error {
	switch d.fault {
	case Hang:
		return sleep(ctx, forever)
	case Reset:
		sleep(ctx, d.wait)
		return errBroken
	}
	if err := sleep(ctx, d.wait); err != nil {
		return err
	}
	d.writeHead(rw, e)
	began, last := time.Now(), d.pieces()-1
	for i := range last + 1 {
		data, at := d.piece(i)
		if err := sleep(ctx, at-time.Since(began)); err != nil {
			return err
		}
		e.sent(len(data))
		if i == last && !d.breaks() {
			e.end(d.fault == BadGzip)
		}
		if _, err := rw.Write(data); err != nil {
			return err
		}
		if err := http.NewResponseController(rw).Flush(); err != nil {
			return err
		}
	}
	return d.stopShort(ctx)
}

// writeHead sends the head of the answer.
func (d *delivery) writeHead(rw http.ResponseWriter, e *entry) {
	e.head(*d)
	if d.pieces() == 0 && !d.breaks() {
		e.end(false)
	}
	for name, values := range d.header {
		rw.Header()[name] = values
	}
	rw.WriteHeader(d.status)
}

var errBroken = errors.New("broken off")

// stopShort ends a body that is not to be sent to its end.
func (d *delivery) stopShort(ctx context.Context) error {
	switch {
	case d.fault == Stall:
		return sleep(ctx, forever)
	case d.breaks():
		return errBroken
	}
	return nil
}

// breakOff ends the connection under an answer, with a reset if that is the
// fault.
func breakOff(rw http.ResponseWriter, f Fault) {
	conn, buf, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return // gone already, or no HTTP/1
	}
	buf.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok && (f == Reset || f == ResetBody) {
		tcp.SetLinger(0)
	}
	conn.Close()
}

func statusLine(code int) string { return strconv.Itoa(code) + " " + http.StatusText(code) }

// A Server is a web on a real socket.
type Server struct {
	Addr string // host:port it listens on

	http    *http.Server
	quit    context.CancelFunc
	serving sync.WaitGroup // the accept loop and every handler
}

// Start serves the web on addr, 127.0.0.1:0 if that is empty, until Close.
func (w *Web) Start(addr string) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	ctx, quit := context.WithCancel(context.Background())
	s := &Server{Addr: listener.Addr().String(), quit: quit}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			s.serving.Add(1)
			defer s.serving.Done()
			w.ServeHTTP(rw, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.serving.Go(func() { s.http.Serve(listener) }) // ends with ErrServerClosed, by Close
	return s, nil
}

// Transport returns a transport that sends every request to the server,
// whatever host its URL names. Its owner should close its idle connections.
func (s *Server) Transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Addr)
		},
		MaxIdleConnsPerHost: 1,
	}
}

// Close breaks off answers that wait, hang or trickle, lets the others end,
// and returns when all have: the log is whole then.
func (s *Server) Close() error {
	s.quit()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	s.serving.Wait()
	return err
}
