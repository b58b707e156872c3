package api

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// The time limits of the server. Strangers have shorter ones
// (connlimit.Limits.UntrustedRequestTimeout), and event streams set their own deadlines.
const (
	headerTimeout   = 10 * time.Second
	readTimeout     = time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 10 * time.Second // for calls in hand, when the daemon stops
	maxHeaderBytes  = 64 << 10
)

// Serve answers calls on l, which knows nothing of TLS, until ctx is done; then
// streams end, and calls in hand have ten seconds to. It closes l. All that it
// starts has ended when it returns.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := NewHTTPServer(s, s.cfg.Log)
	return serveUntil(ctx, h, s.eventStreams.stopAll, func() error { return serveTLSOrPlainHTTP(h, s.connLimiter.Listener(l), s.cfg.TLS) })
}

// ServeSocket is Serve for a Unix domain socket. A caller without a token is the
// operator, whom the audit names SocketCallerName: l must accept only those who may
// operate the daemon, and return in RemoteAddr what the audit says of them.
func (s *Server) ServeSocket(ctx context.Context, l net.Listener) error {
	h := NewHTTPServer(s, s.cfg.Log)
	h.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, socketContextKey{}, true)
	}
	// a connection beyond the limit waits: every caller is the operator
	l = netutil.LimitListener(s.connLimiter.UnlimitedListener(l), maxSocketConnections)
	return serveUntil(ctx, h, s.eventStreams.stopAll, func() error { return h.Serve(l) })
}

// SocketCallerName is the name, in the audit, of a caller by the daemon's socket. No token
// should have it.
const SocketCallerName = "socket"

// maxSocketConnections is how many connections the daemon's socket serves at a time.
const maxSocketConnections = 256

type socketContextKey struct{}

// isFromSocket reports whether a call came by ServeSocket.
func isFromSocket(r *http.Request) bool { return r.Context().Value(socketContextKey{}) != nil }

// serveUntil runs serve, which is one of h's methods, until ctx is done. Then it calls endStreams
// and shuts h down.
func serveUntil(ctx context.Context, h *http.Server, endStreams func(), serve func() error) error {
	h.RegisterOnShutdown(endStreams)
	serveErr := make(chan error, 1)
	go func() { serveErr <- serve() }()
	select {
	case err := <-serveErr:
		return err
	case <-ctx.Done():
	}
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := h.Shutdown(shutdownCtx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close() // somebody does not read, or write: that is no fault of ours
	}
	if endErr := <-serveErr; !errors.Is(endErr, http.ErrServerClosed) {
		err = errors.Join(err, endErr)
	}
	return err
}

// serveTLSOrPlainHTTP has h do the TLS if there is any: of connections that a listener of TLS
// gives to another it would not know that, nor that they speak HTTP/2.
func serveTLSOrPlainHTTP(h *http.Server, l net.Listener, config *tls.Config) error {
	if config == nil {
		return h.Serve(l)
	}
	h.TLSConfig = config
	return h.ServeTLS(l, "", "")
}

// NewHTTPServer returns a server with limits for small answers to any caller. It tells
// each connlimit.Conn when a request begins and ends.
func NewHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	counting := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := connlimit.ConnFromContext(r.Context())
		c.BeginRequest()
		defer c.EndRequest()
		h.ServeHTTP(w, r)
	})
	return &http.Server{
		Handler: counting, ConnContext: connlimit.WithConn, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: readTimeout + writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // of those who break off, mostly
	}
}
