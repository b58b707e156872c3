package api

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// How patient the server is. What streams has deadlines of its own.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 10 * time.Second // for calls in hand, when the daemon stops
	maxHeader     = 64 << 10
)

// Serve answers calls on l, which knows nothing of TLS, until ctx is done; then
// streams end, and calls in hand have ten seconds to. It closes l. All that it
// starts has ended when it returns.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := NewHTTPServer(s, s.cfg.Log)
	h.RegisterOnShutdown(s.endStreams)
	ended := make(chan error, 1)
	go func() { ended <- s.answer(h, netutil.LimitListener(l, s.cfg.Connections)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := h.Shutdown(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close() // somebody does not read, or write: that is no fault of ours
	}
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// answer has h do the TLS if there is any: of connections that a listener of TLS
// gives to another it would not know that, nor that they speak HTTP/2.
func (s *Server) answer(h *http.Server, l net.Listener) error {
	if s.cfg.TLS == nil {
		return h.Serve(l)
	}
	h.TLSConfig = s.cfg.TLS
	return h.ServeTLS(l, "", "")
}

// NewHTTPServer returns a server with limits that suit small answers to anybody.
func NewHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: readTimeout + writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // of those who break off, mostly
	}
}
