package crawltest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// A Site is one host: what it serves, and what its owner asks of crawlers.
type Site struct {
	Host string // lower case, without port; any scheme and port lead here
	// Robots is the robots.txt in force at a moment. It must be a pure
	// function: the judge asks it again. Nil: 404.
	Robots func(at time.Time) RobotsSpec
	// Pages are the site's pages by path. A path with its query goes before
	// the path alone.
	Pages map[string]PageFunc
	// Fallback answers what Pages does not hold. Nil: 404.
	Fallback PageFunc
	// OtherMethodPages answer requests by methods other than GET and HEAD, by path as Pages
	// do. Nil: 405.
	OtherMethodPages map[string]PageFunc
	// MaxConcurrency is how many requests at a time the owner allows. Default 1.
	MaxConcurrency int
	Latency        Latency
}

// RobotsSpec is a site's robots.txt and what it means, as the site's owner states
// it for the agent that is judged.
type RobotsSpec struct {
	Response     Response               // the file, or what is answered in its place
	CrawlDelay   time.Duration          // the rest it asks for
	IsDisallowed func(path string) bool // whether it closes a path (with query); nil: none
	// RemoveCleanParams returns a path (with query) without the parameters that Clean-param
	// says do not matter; nil: all matter.
	RemoveCleanParams func(path string) string
}

// StaticRobots returns the Robots of a site whose robots.txt never changes.
func StaticRobots(r RobotsSpec) func(time.Time) RobotsSpec {
	return func(time.Time) RobotsSpec { return r }
}

// A Web is a set of sites and the log of what they were asked. Its methods may
// be called at the same time.
type Web struct {
	CrawlSettings CrawlSettings // how it is meant to be crawled
	// MaxLogEntries bounds the log: what comes later is answered, and not logged.
	// Default 250,000 requests.
	MaxLogEntries int

	sites       map[string]*Site
	exchangeLog exchangeLog
}

// New returns a web of the given sites.
func New(sites ...Site) *Web {
	w := &Web{sites: make(map[string]*Site, len(sites))}
	for _, s := range sites {
		w.sites[s.Host] = &s
	}
	return w
}

// robotsAt returns the robots.txt in force at a moment.
func (s *Site) robotsAt(at time.Time) RobotsSpec {
	if s == nil || s.Robots == nil {
		return RobotsSpec{Response: Status(http.StatusNotFound)}
	}
	return s.Robots(at)
}

// respond returns what the site says to r.
func (s *Site) respond(r PageRequest) Response {
	if s == nil {
		return Status(http.StatusMisdirectedRequest)
	}
	path, _, _ := strings.Cut(r.Path, "?")
	pages, others, none := s.Pages, s.Fallback, http.StatusNotFound
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		pages, others, none = s.OtherMethodPages, nil, http.StatusMethodNotAllowed
	}
	switch {
	case r.Path == robotsPath && none == http.StatusNotFound:
		return s.robotsAt(r.ReceivedAt).Response
	case pages[r.Path] != nil:
		return pages[r.Path](r)
	case pages[path] != nil:
		return pages[path](r)
	case others != nil:
		return others(r)
	}
	return Status(none)
}

const robotsPath = "/robots.txt"

// logRequestAndPrepareResponse logs a request and returns what is to be sent for it.
func (w *Web) logRequestAndPrepareResponse(r *http.Request, scheme string, overSocket bool) (*exchangeRecorder, wireResponse) {
	hostport := r.Host
	if hostport == "" {
		hostport = r.URL.Host
	}
	hostport = normalizeHostPort(scheme, hostport)
	req := PageRequest{Method: r.Method, Host: withoutPort(hostport), Path: r.URL.RequestURI(), Header: r.Header, ReceivedAt: time.Now()}
	if req.Method == "" {
		req.Method = http.MethodGet
	}
	if r.Body != nil { // what breaks off is answered as far as it came
		req.Body, _ = io.ReadAll(io.LimitReader(r.Body, maxRequestBodyBytes))
	}
	e := w.exchangeLog.addEntryUpToLimit(Exchange{
		Method: req.Method, RequestBodySHA256: sha256Hex(req.Body), URL: scheme + "://" + hostport + req.Path,
		UserAgent: r.UserAgent(), Conditional: isConditional(r.Header), Start: req.ReceivedAt, OverSocket: overSocket,
	}, w.maxLogEntriesOrDefault())
	req.NthForURL = e.nthForURL
	site := w.sites[req.Host]
	return e, prepareResponse(req, site.respond(req), site.latencyOrZero())
}

// maxRequestBodyBytes is how much of the body of a request is read.
const maxRequestBodyBytes = 32 << 20

// sha256Hex returns the SHA-256 of a body in hex, empty if there is none.
func sha256Hex(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (w *Web) maxLogEntriesOrDefault() int {
	if w.MaxLogEntries == 0 {
		return 250_000
	}
	return w.MaxLogEntries
}

func (s *Site) latencyOrZero() Latency {
	if s == nil {
		return Latency{}
	}
	return s.Latency
}

func isConditional(h http.Header) bool {
	return h.Get("If-None-Match") != "" || h.Get("If-Modified-Since") != ""
}

// normalizeHostPort returns host and port as the log writes them: lower case, without the
// scheme's own port.
func normalizeHostPort(scheme, hostport string) string {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(hostport), port)
}

// withoutPort returns a host without its port: to whom politeness is owed.
func withoutPort(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// splitOriginAndPath returns the origin and the path, with query, of a URL as it is logged.
func splitOriginAndPath(url string) (origin, path string) {
	scheme, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return scheme + "://" + rest[:i], rest[i:]
	}
	return url, "/"
}

// hostOf returns the host of a URL or origin as it is logged.
func hostOf(url string) string {
	origin, _ := splitOriginAndPath(url)
	_, hostport, _ := strings.Cut(origin, "://")
	return withoutPort(hostport)
}
