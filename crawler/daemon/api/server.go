package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// ServerConfig says how a daemon is spoken to.
type ServerConfig struct {
	APIKeys        []APIKey     // who may call; without one, nobody may
	AuditLog       *AuditLog    // of calls that change something; compulsory for a daemon
	PageHandler    http.Handler // for browsers: all paths that are none of the API's; nil: none
	MetricsHandler http.Handler // GET /metrics; nil: none
	// PublicMetrics lets anybody read the metrics.
	PublicMetrics bool
	// AllowedHosts are the names that browsers may call the daemon by, besides IP
	// addresses and localhost: a page of another site could otherwise have its own
	// name lead here.
	AllowedHosts    []string
	Version         string           // in the OpenAPI document
	TLS             *tls.Config      // with its certificates; nil: plain HTTP
	MaxEventStreams int              // of events, at a time; 0: 200
	ConnLimits      connlimit.Limits // of connections
	Log             *slog.Logger     // nil: slog.Default
}

// A Server is the HTTP side of a daemon: its API, and around a page the door.
type Server struct {
	daemon                 Daemon // nil: a crawl in the foreground is served
	inspectorHandlers      inspectorHandlers
	cfg                    ServerConfig
	mux                    *http.ServeMux
	crossOriginProtection  http.CrossOriginProtection
	sessions               loginSessions
	wrongTokenThrottle     untrustedThrottle // of wrong tokens
	untrustedAuditThrottle untrustedThrottle // of what the audit keeps of calls that were not let in
	connLimiter            *connlimit.Limiter
	eventStreams           *eventStreams
}

// NewServer returns the server of a daemon. It starts nothing.
func NewServer(d Daemon, cfg ServerConfig) *Server {
	s := newUnroutedServer(cfg, d.Inspector)
	s.daemon = d
	for _, rt := range routes {
		s.mux.Handle(rt.method+" "+rt.path, s.routeHandler(rt))
	}
	return s
}

// CrawlName is the name of the only project that NewCrawlServer serves.
const CrawlName = "crawl"

// NewCrawlServer returns the server of a crawl that runs in the foreground: it answers the
// calls of the API that an Inspector can answer. It starts nothing.
func NewCrawlServer(crawl Inspector, log *slog.Logger) *Server {
	s := newUnroutedServer(ServerConfig{Log: log}, func(_ context.Context, project string) (Inspector, error) {
		if project != CrawlName {
			return nil, NotFound("there is no project %s here: a crawl in the foreground is called %s", project, CrawlName)
		}
		return crawl, nil
	})
	for _, rt := range routes {
		if rt.handleCrawl != nil || rt.path == healthPath {
			s.mux.Handle(rt.method+" "+rt.path, s.routeHandler(rt))
		}
	}
	return s
}

func newUnroutedServer(cfg ServerConfig, inspectorOf func(context.Context, string) (Inspector, error)) *Server {
	cfg.MaxEventStreams = cmp.Or(cfg.MaxEventStreams, 200)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	ctx, stop := context.WithCancel(context.Background())
	streams := &eventStreams{max: cfg.MaxEventStreams, stopContext: ctx, stopAll: stop}
	return &Server{
		cfg: cfg, mux: http.NewServeMux(), connLimiter: connlimit.New(cfg.ConnLimits), eventStreams: streams,
		inspectorHandlers: inspectorHandlers{inspectorOf: inspectorOf, eventStreams: streams, log: cfg.Log},
	}
}

// ServeHTTP answers a call of the API, or hands it to the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	setHSTS(w.Header(), r)
	defer s.recoverPanic(w, r)
	if !isExemptFromHostCheck(r.URL.Path) && r.Header.Get("Authorization") == "" && !isAllowedHostHeader(r.Host, s.cfg.AllowedHosts) {
		writeProblem(w, newProblem(http.StatusMisdirectedRequest,
			"the daemon is not called %q: use its address, or have its operator name it with --host", r.Host))
		return
	}
	switch _, pattern := s.mux.Handler(r); {
	case pattern != "":
		s.mux.ServeHTTP(w, r) // which sets the values of the path
	case strings.HasPrefix(r.URL.Path, "/api/") || s.cfg.PageHandler == nil:
		writeProblem(w, s.unroutedProblem(r, w.Header()))
	default:
		s.authorizeAndServePage(w, r)
	}
}

// unroutedProblem is the problem of a path, or a method, that is not in the table.
func (s *Server) unroutedProblem(r *http.Request, h http.Header) *Problem {
	var methods []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
		other := r.WithContext(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "" {
			methods = append(methods, method)
		}
	}
	allow := strings.Join(methods, ", ")
	switch {
	case allow == "" && s.daemon == nil:
		return NotFound("there is nothing at %s: a crawl in the foreground answers report, explain, frontier, ledger and urls of the project %s", r.URL.Path, CrawlName)
	case allow == "":
		return NotFound("there is nothing at %s: see /openapi.json", r.URL.Path)
	}
	h.Set("Allow", allow)
	return newProblem(http.StatusMethodNotAllowed, "%s takes %s", r.URL.Path, allow)
}

// recoverPanic answers for a handler that panicked.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Log.Error("a handler of the API panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	writeProblem(w, internalProblem())
}

// BotPageHandler is what site owners may see of a daemon: the page that they find behind a
// crawler's User-Agent, and nothing else of a page, and the keys of its signatures.
func BotPageHandler(d Daemon, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, newProblem(http.StatusMethodNotAllowed, "%s is for reading", path))
		case path == "/":
			http.Redirect(w, r, botPath, http.StatusFound)
		case path == botPath, strings.HasPrefix(path, assetsPath):
			page.ServeHTTP(w, r)
		case path == keyDirectoryPath:
			serveSigningKeyDirectory(d, w, r)
		default:
			writeProblem(w, NotFound("there is nothing at %s", path))
		}
	})
}

// serveSigningKeyDirectory answers with the key directory of the host that is asked.
func serveSigningKeyDirectory(d Daemon, w http.ResponseWriter, r *http.Request) {
	if directory := d.PublishedSigningKeys(r.Host); directory != nil {
		directory.ServeHTTP(w, r)
		return
	}
	writeProblem(w, NotFound("no project signs its requests with keys of %s", r.Host))
}

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
	l = s.connLimiter.Listener(l)
	return serveUntil(ctx, h, s.eventStreams.stopAll, func() error {
		if s.cfg.TLS == nil {
			return h.Serve(l)
		}
		// Of connections that a listener of TLS gives to it h would not know that there is
		// any, nor that they speak HTTP/2.
		h.TLSConfig = s.cfg.TLS
		return h.ServeTLS(l, "", "")
	})
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
