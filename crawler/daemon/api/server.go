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

// ServerConfig configures a Server.
type ServerConfig struct {
	APIKeys []APIKey // the keys that callers may present; without one, only public calls are possible
	// RotateToken durably replaces the token of the key called name. It returns the new key and the file
	// that holds the token. The key is valid also after an error, unless it is zero: the new token is in
	// use then, and may not be durable. nil: tokens cannot be replaced.
	RotateToken    func(name string) (key APIKey, file string, err error)
	AuditLog       *AuditLog    // records calls that may change something; required for a daemon
	PageHandler    http.Handler // the pages for browsers, at all paths outside the API; nil: none
	MetricsHandler http.Handler // GET /metrics; nil: none
	// PublicMetrics lets callers without a token read the metrics.
	PublicMetrics bool
	// AllowedHosts are the host names that browsers may use for the daemon, besides IP
	// addresses and localhost. Without this check a page of another site could let its own
	// name resolve to the daemon's address (DNS rebinding).
	AllowedHosts    []string
	Version         string           // of the program, for the OpenAPI document
	TLS             *tls.Config      // with its certificates; nil: plain HTTP
	MaxEventStreams int              // event streams open at a time; 0: 200
	ConnLimits      connlimit.Limits // of connections that Serve accepts
	Log             *slog.Logger     // nil: slog.Default
}

// A Server serves the API of a daemon, and authenticates callers of the page.
type Server struct {
	daemon                 Daemon // nil: the server of a crawl in the foreground
	inspectorHandlers      inspectorHandlers
	cfg                    ServerConfig
	mux                    *http.ServeMux
	crossOriginProtection  http.CrossOriginProtection
	keys                   apiKeySet
	sessions               loginSessions
	wrongTokenThrottle     untrustedThrottle // limits wrong tokens
	untrustedAuditThrottle untrustedThrottle // limits audit entries for refused calls
	connLimiter            *connlimit.Limiter
	eventStreams           *eventStreams
}

// NewServer returns the server of a daemon. It starts no goroutine.
func NewServer(d Daemon, cfg ServerConfig) *Server {
	s := newUnroutedServer(cfg, d.Inspector)
	s.daemon = d
	for _, rt := range routes {
		s.mux.Handle(rt.method+" "+rt.path, s.routeHandler(rt))
	}
	return s
}

// CrawlName is the name of the one project that a server of NewCrawlServer has.
const CrawlName = "crawl"

// NewCrawlServer returns the server of a crawl that runs in the foreground. It serves the
// routes that an Inspector can answer, and /healthz. It starts no goroutine.
func NewCrawlServer(crawl Inspector, log *slog.Logger) *Server {
	s := newUnroutedServer(ServerConfig{Log: log}, func(_ context.Context, project string) (Inspector, error) {
		if project != CrawlName {
			return nil, NotFound("there is no project %s here: the project of a crawl in the foreground is %s", project,
				CrawlName)
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

// newUnroutedServer returns a Server without routes, with the defaults of cfg filled in.
func newUnroutedServer(cfg ServerConfig, inspectorOf func(context.Context, string) (Inspector, error)) *Server {
	cfg.MaxEventStreams = cmp.Or(cfg.MaxEventStreams, 200)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	ctx, stop := context.WithCancel(context.Background())
	streams := &eventStreams{max: cfg.MaxEventStreams, stopContext: ctx, stopAll: stop}
	return &Server{
		keys: apiKeySet{keys: cfg.APIKeys, changed: make(chan struct{})},
		cfg:  cfg, mux: http.NewServeMux(), connLimiter: connlimit.New(cfg.ConnLimits), eventStreams: streams,
		inspectorHandlers: inspectorHandlers{inspectorOf: inspectorOf, eventStreams: streams, log: cfg.Log},
	}
}

// ServeHTTP answers a call of the API, or passes it to the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	setHSTS(w.Header(), r)
	defer s.recoverPanic(w, r)
	// A page of another site cannot set Authorization, so the Host header of a call with a token
	// does not matter.
	if !isExemptFromHostCheck(r.URL.Path) && r.Header.Get("Authorization") == "" &&
		!isAllowedHostHeader(r.Host, s.cfg.AllowedHosts) {
		writeProblem(w, newProblem(http.StatusMisdirectedRequest,
			"%q is not a host name of this daemon: use its IP address, or add the name with --host", r.Host))
		return
	}
	switch _, pattern := s.mux.Handler(r); {
	case pattern != "":
		s.mux.ServeHTTP(w, r) // it sets the values for PathValue
	case strings.HasPrefix(r.URL.Path, "/api/") || s.cfg.PageHandler == nil:
		writeProblem(w, s.unroutedProblem(r, w.Header()))
	default:
		s.authorizeAndServePage(w, r)
	}
}

// unroutedProblem returns the problem of a path without a route (404), or of a method that the
// path does not take (405, with the header Allow).
func (s *Server) unroutedProblem(r *http.Request, h http.Header) *Problem {
	// Ask the mux which methods have a route at this path.
	var methods []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead,
		http.MethodPost, http.MethodPut} {
		other := r.WithContext(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "" {
			methods = append(methods, method)
		}
	}
	allow := strings.Join(methods, ", ")
	switch {
	case allow == "" && s.daemon == nil:
		return NotFound("there is nothing at %s: a crawl in the foreground answers report, explain, frontier, "+
			"ledger and urls of the project %s", r.URL.Path, CrawlName)
	case allow == "":
		return NotFound("there is nothing at %s: see /openapi.json", r.URL.Path)
	}
	h.Set("Allow", allow)
	return newProblem(http.StatusMethodNotAllowed, "%s takes %s", r.URL.Path, allow)
}

// recoverPanic logs the panic of a handler and answers with 500. It passes on the panic that
// aborts an answer.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Log.Error("an API handler panicked",
		"method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	writeProblem(w, internalProblem())
}

// BotPageHandler returns the public handler for site owners. It serves the page that a crawler's
// User-Agent links to, with its assets, and the keys that requests are signed with. It serves
// nothing else of page.
func BotPageHandler(d Daemon, page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		switch path := r.URL.Path; {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			writeProblem(w, newProblem(http.StatusMethodNotAllowed, "%s takes GET and HEAD only", path))
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

// serveSigningKeyDirectory answers with the key directory of the host that the request names.
func serveSigningKeyDirectory(d Daemon, w http.ResponseWriter, r *http.Request) {
	if directory := d.PublishedSigningKeys(r.Host); directory != nil {
		directory.ServeHTTP(w, r)
		return
	}
	writeProblem(w, NotFound("no project signs its requests with keys that %s publishes", r.Host))
}

// The time and size limits of the server. A connection that has not shown a valid token has a
// shorter time limit (connlimit.Limits.UntrustedRequestTimeout). Event streams and streamed
// answers set their own deadlines.
const (
	headerTimeout   = 10 * time.Second
	readTimeout     = time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 10 * time.Second // for calls in progress when the daemon stops
	maxHeaderBytes  = 64 << 10
)

// Serve answers calls on l until ctx is done, over TLS if the configuration says so; l itself
// must be a plain listener. Then it ends the streams and gives calls in progress ten seconds;
// after them it closes their connections. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := NewHTTPServer(s, s.cfg.Log)
	l = s.connLimiter.Listener(l)
	return serveUntil(ctx, h, s.eventStreams.stopAll, func() error {
		if s.cfg.TLS == nil {
			return h.Serve(l)
		}
		// h adds TLS itself. If l were a TLS listener, h would see the limiter's connections
		// around it, and not that they carry TLS and HTTP/2.
		h.TLSConfig = s.cfg.TLS
		return h.ServeTLS(l, "", "")
	})
}

// ServeSocket is Serve for a Unix domain socket. A caller without a token has the role operate
// and the name SocketCallerName. Therefore l must accept only callers who may operate the daemon;
// the RemoteAddr of its connections is what the audit records of them.
func (s *Server) ServeSocket(ctx context.Context, l net.Listener) error {
	h := NewHTTPServer(s, s.cfg.Log)
	h.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, socketContextKey{}, true)
	}
	// A connection beyond the limit waits instead of being refused, because every caller is an operator.
	l = netutil.LimitListener(s.connLimiter.UnlimitedListener(l), maxSocketConnections)
	return serveUntil(ctx, h, s.eventStreams.stopAll, func() error { return h.Serve(l) })
}

// SocketCallerName is the name, in the audit, of a caller that uses the daemon's socket. No
// APIKey should have this name.
const SocketCallerName = "socket"

// maxSocketConnections is how many connections the daemon's socket serves at a time.
const maxSocketConnections = 256

type socketContextKey struct{}

// isFromSocket reports whether a call came through ServeSocket.
func isFromSocket(r *http.Request) bool { return r.Context().Value(socketContextKey{}) != nil }

// serveUntil runs serve, which is one of h's methods, until ctx is done. Then it calls endStreams
// and shuts h down. It returns after serve has.
func serveUntil(ctx context.Context, h *http.Server, endStreams func(), serve func() error) error {
	h.RegisterOnShutdown(endStreams)
	serveErr := make(chan error, 1)
	go func() { serveErr <- serve() }()
	select {
	case err := <-serveErr:
		return err
	case <-ctx.Done():
	}
	// Let the calls in progress finish within shutdownTimeout.
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := h.Shutdown(shutdownCtx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close() // a caller does not read or write; that is not an error of the server
	}
	if endErr := <-serveErr; !errors.Is(endErr, http.ErrServerClosed) {
		err = errors.Join(err, endErr)
	}
	return err
}

// NewHTTPServer returns a server with time and size limits that suit small answers to untrusted
// callers. It reports the begin and the end of each request to its connlimit.Conn.
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
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // mostly connections that callers break off
	}
}
