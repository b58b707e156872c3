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
	Robots func(at time.Time) Robots
	// Pages are the site's pages by path. A path with its query goes before
	// the path alone.
	Pages map[string]Page
	// Others answers what Pages does not hold. Nil: 404.
	Others Page
	// Forms answer requests by methods other than GET and HEAD, by path as Pages
	// do. Nil: 405.
	Forms map[string]Page
	// Concurrency is how many requests at a time the owner allows. Default 1.
	Concurrency int
	Latency     Latency
}

// Robots is a site's robots.txt and what it means, as the site's owner states
// it for the agent that is judged.
type Robots struct {
	Answer   Answer                 // the file, or what is answered in its place
	Delay    time.Duration          // the rest it asks for
	Disallow func(path string) bool // whether it closes a path (with query); nil: none
	// Clean returns a path (with query) without the parameters that Clean-param
	// says do not matter; nil: all matter.
	Clean func(path string) string
}

// Lasting returns the Robots of a site whose robots.txt never changes.
func Lasting(r Robots) func(time.Time) Robots { return func(time.Time) Robots { return r } }

// A Web is a set of sites and the log of what they were asked. Its methods may
// be called at the same time.
type Web struct {
	Plan Plan // how it is meant to be crawled
	// MaxLog bounds the log: what comes later is answered, and not logged.
	// Default 250,000 requests.
	MaxLog int

	sites map[string]*Site
	log   book
}

// New returns a web of the given sites.
func New(sites ...Site) *Web {
	w := &Web{sites: make(map[string]*Site, len(sites))}
	for _, s := range sites {
		w.sites[s.Host] = &s
	}
	return w
}

// robots returns the robots.txt in force at a moment.
func (s *Site) robots(at time.Time) Robots {
	if s == nil || s.Robots == nil {
		return Robots{Answer: Status(http.StatusNotFound)}
	}
	return s.Robots(at)
}

// answer returns what the site says to r.
func (s *Site) answer(r Request) Answer {
	if s == nil {
		return Status(http.StatusMisdirectedRequest)
	}
	path, _, _ := strings.Cut(r.Path, "?")
	pages, others, none := s.Pages, s.Others, http.StatusNotFound
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		pages, others, none = s.Forms, nil, http.StatusMethodNotAllowed
	}
	switch {
	case r.Path == robotsPath && none == http.StatusNotFound:
		return s.robots(r.At).Answer
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

// begin logs a request and returns what is to be sent for it.
func (w *Web) begin(r *http.Request, scheme string, wire bool) (*entry, delivery) {
	hostport := r.Host
	if hostport == "" {
		hostport = r.URL.Host
	}
	hostport = logged(scheme, hostport)
	req := Request{Method: r.Method, Host: bareHost(hostport), Path: r.URL.RequestURI(), Header: r.Header, At: time.Now()}
	if req.Method == "" {
		req.Method = http.MethodGet
	}
	if r.Body != nil { // what breaks off is answered as far as it came
		req.Body, _ = io.ReadAll(io.LimitReader(r.Body, maxRequestBodyBytes))
	}
	e := w.log.begin(Exchange{
		Method: req.Method, BodySHA256: digest(req.Body), URL: scheme + "://" + hostport + req.Path,
		Agent: r.UserAgent(), Conditional: conditional(r.Header), Start: req.At, Wire: wire,
	}, w.maxLog())
	req.Nth = e.nth
	site := w.sites[req.Host]
	return e, newDelivery(req, site.answer(req), site.latency())
}

// maxRequestBodyBytes is how much of the body of a request is read.
const maxRequestBodyBytes = 32 << 20

// digest returns the SHA-256 of a body in hex, empty if there is none.
func digest(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (w *Web) maxLog() int {
	if w.MaxLog == 0 {
		return 250_000
	}
	return w.MaxLog
}

func (s *Site) latency() Latency {
	if s == nil {
		return Latency{}
	}
	return s.Latency
}

func conditional(h http.Header) bool {
	return h.Get("If-None-Match") != "" || h.Get("If-Modified-Since") != ""
}

// logged returns host and port as the log writes them: lower case, without the
// scheme's own port.
func logged(scheme, hostport string) string {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(hostport), port)
}

// bareHost returns a host without its port: to whom politeness is owed.
func bareHost(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// split returns the origin and the path, with query, of a URL as it is logged.
func split(url string) (origin, path string) {
	scheme, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		return scheme + "://" + rest[:i], rest[i:]
	}
	return url, "/"
}

// hostOf returns the host of a URL or origin as it is logged.
func hostOf(url string) string {
	origin, _ := split(url)
	_, hostport, _ := strings.Cut(origin, "://")
	return bareHost(hostport)
}
