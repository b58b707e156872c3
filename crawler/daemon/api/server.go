package api

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// Config says how a daemon is spoken to.
type Config struct {
	Keys    []Key        // who may call; without one, nobody may
	Audit   *Audit       // of calls that change something; compulsory
	Page    http.Handler // for browsers: all paths that are none of the API's; nil: none
	Metrics http.Handler // GET /metrics; nil: none
	// PublicMetrics lets anybody read the metrics.
	PublicMetrics bool
	// Hosts are the names that browsers may call the daemon by, besides IP
	// addresses and localhost: a page of another site could otherwise have its own
	// name lead here.
	Hosts   []string
	Version string           // in the OpenAPI document
	TLS     *tls.Config      // with its certificates; nil: plain HTTP
	Streams int              // of events, at a time; 0: 200
	Limits  connlimit.Limits // of connections
	Log     *slog.Logger     // nil: slog.Default
}

// A Server is the HTTP side of a daemon: its API, and around a page the door.
type Server struct {
	d         Daemon
	cfg       Config
	mux       *http.ServeMux
	cross     http.CrossOriginProtection
	sessions  sessions
	throttle  throttle // of wrong tokens
	strangers throttle // of what the audit keeps of calls that were not let in
	limiter   *connlimit.Limiter
	streams   atomic.Int64
	document  func() []byte
	stop      chan struct{} // closed when streams have to end
	stopped   sync.Once
}

// NewServer returns the server of a daemon. It starts nothing.
func NewServer(d Daemon, cfg Config) *Server {
	cfg.Streams = cmp.Or(cfg.Streams, 200)
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{d: d, cfg: cfg, mux: http.NewServeMux(), limiter: connlimit.New(cfg.Limits), stop: make(chan struct{})}
	s.document = sync.OnceValue(func() []byte { return document(routes, cfg.Version) })
	for _, rt := range routes {
		s.mux.Handle(rt.method+" "+rt.path, s.serve(rt))
	}
	return s
}

// endStreams ends what goes on without end: it is called when the server stops.
func (s *Server) endStreams() { s.stopped.Do(func() { close(s.stop) }) }

// ServeHTTP answers a call of the API, or hands it to the page.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	demandTLS(w.Header(), r)
	defer s.recovered(w, r)
	if !isNameless(r.URL.Path) && r.Header.Get("Authorization") == "" && !s.knows(r.Host) {
		writeProblem(w, problem(http.StatusMisdirectedRequest,
			"the daemon is not called %q: use its address, or have its operator name it with --host", r.Host))
		return
	}
	handler, pattern := s.mux.Handler(r)
	switch {
	case pattern != "":
		s.mux.ServeHTTP(w, r) // which sets the values of the path
	case strings.HasPrefix(r.URL.Path, "/api/") || s.cfg.Page == nil:
		writeProblem(w, unrouted(handler, r, w.Header()))
	default:
		s.servePage(w, r)
	}
}

// unrouted is the problem of a path, or a method, that is not in the table.
func unrouted(handler http.Handler, r *http.Request, h http.Header) *Problem {
	var probe probe
	handler.ServeHTTP(&probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return NotFound("there is nothing at %s: see /openapi.json", r.URL.Path)
	}
	h.Set("Allow", probe.Header().Get("Allow"))
	return problem(http.StatusMethodNotAllowed, "%s takes %s", r.URL.Path, probe.Header().Get("Allow"))
}

// A probe takes what net/http's router says of a call that has no route.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// recovered answers for a handler that panicked.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.cfg.Log.Error("a handler of the API panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	writeProblem(w, internal())
}
