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

// A Site is one host, with its pages and the rules of its owner for crawlers.
type Site struct {
	Host string // lower case, without port; the site answers for any scheme and port
	// AnswersSubdomains makes the site answer for all hosts below Host that are no sites themselves.
	AnswersSubdomains bool
	// Robots returns the robots.txt at the given time. It must be a pure function, because the judge
	// calls it again. Nil: 404.
	Robots func(at time.Time) RobotsSpec
	// Pages holds the pages by path. A path with the request's query takes precedence over the path
	// alone.
	Pages map[string]PageFunc
	// Fallback answers requests for paths that Pages lacks. Nil: 404.
	Fallback PageFunc
	// OtherMethodPages answers requests with methods other than GET and HEAD, by path as Pages does.
	// Without an entry the answer is 405.
	OtherMethodPages map[string]PageFunc
	// MaxConcurrency is how many requests at a time the owner allows. Default 1.
	MaxConcurrency int
	Latency        Latency
}

// RobotsSpec is a site's robots.txt, with its meaning for the judged crawler as the site's author
// states it. The judge relies on the statement and does not parse the file.
type RobotsSpec struct {
	Response     Response               // the answer to a request for robots.txt
	CrawlDelay   time.Duration          // the delay that it sets; 0: none
	IsDisallowed func(path string) bool // whether it closes a path (with query); nil: it closes none
	// RemoveCleanParams returns a path (with query) without the parameters that its Clean-param lines
	// name; nil: there are no such lines.
	RemoveCleanParams func(path string) string
}

// StaticRobots returns a value for Site.Robots that is r at all times.
func StaticRobots(r RobotsSpec) func(time.Time) RobotsSpec {
	return func(time.Time) RobotsSpec { return r }
}

// A Web is a set of sites and the log of the requests to them. Its methods are safe for concurrent
// use.
type Web struct {
	CrawlSettings CrawlSettings // the settings with which to crawl it
	// MaxLogEntries is the limit of the log. Later requests are answered but not logged. Default
	// 250,000 requests.
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

// siteOf returns the site that answers for host, or nil.
func (w *Web) siteOf(host string) *Site {
	if s := w.sites[host]; s != nil {
		return s
	}
	for {
		_, parent, ok := strings.Cut(host, ".")
		if !ok {
			return nil
		}
		if s := w.sites[parent]; s != nil && s.AnswersSubdomains {
			return s
		}
		host = parent
	}
}

// robotsAt returns the robots.txt at the given time. s may be nil.
func (s *Site) robotsAt(at time.Time) RobotsSpec {
	if s == nil || s.Robots == nil {
		return RobotsSpec{Response: Status(http.StatusNotFound)}
	}
	return s.Robots(at)
}

// respond returns the site's answer to r. s may be nil: the answer is 421 then.
func (s *Site) respond(r PageRequest) Response {
	if s == nil {
		return Status(http.StatusMisdirectedRequest)
	}
	path, _, _ := strings.Cut(r.Path, "?")
	pages, others, none := s.Pages, s.Fallback, http.StatusNotFound
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		pages, others, none = s.OtherMethodPages, nil, http.StatusMethodNotAllowed
	}
	// The path with its query, then the path alone, then the fallback.
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

// logRequestAndPrepareResponse logs a request and returns the answer to send.
func (w *Web) logRequestAndPrepareResponse(r *http.Request, scheme string,
	overSocket bool) (*exchangeRecorder, wireResponse) {
	hostport := r.Host
	if hostport == "" {
		hostport = r.URL.Host
	}
	hostport = normalizeHostPort(scheme, hostport)
	req := PageRequest{Method: r.Method, Host: withoutPort(hostport), Path: r.URL.RequestURI(),
		Header: r.Header, ReceivedAt: time.Now()}
	if req.Method == "" {
		req.Method = http.MethodGet
	}
	if r.Body != nil { // a body that breaks off is used as far as it arrived
		req.Body, _ = io.ReadAll(io.LimitReader(r.Body, maxRequestBodyBytes))
	}
	// The log numbers the request before the site answers it.
	e := w.exchangeLog.addEntryUpToLimit(Exchange{
		Method: req.Method, RequestBodySHA256: sha256Hex(req.Body), URL: scheme + "://" + hostport + req.Path,
		UserAgent: r.UserAgent(), Conditional: isConditional(r.Header), Start: req.ReceivedAt, OverSocket: overSocket,
	}, w.maxLogEntriesOrDefault())
	req.NthForURL = e.nthForURL
	site := w.siteOf(req.Host)
	return e, prepareResponse(req, site.respond(req), site.latencyOrZero())
}

// maxRequestBodyBytes is how many bytes of a request's body are read.
const maxRequestBodyBytes = 32 << 20

// sha256Hex returns the SHA-256 of a body in hex, or "" for an empty body.
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

// normalizeHostPort returns host and port in the form of the log: lower case, without the scheme's
// default port.
func normalizeHostPort(scheme, hostport string) string {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(hostport), port)
}

// withoutPort returns the host of host:port. Politeness is owed to a host, whatever the port.
func withoutPort(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// splitOriginAndPath returns the origin, and the path with query, of a URL in the form of the log.
func splitOriginAndPath(url string) (origin, path string) {
	scheme, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return scheme + "://" + rest[:i], rest[i:]
	}
	return url, "/"
}

// hostOf returns the host, without port, of a URL or origin in the form of the log.
func hostOf(url string) string {
	origin, _ := splitOriginAndPath(url)
	_, hostport, _ := strings.Cut(origin, "://")
	return withoutPort(hostport)
}
