package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A webDescription describes the web of the crawls in testdata/past, as web.json has it.
// testdata/past/generate serves this web as it was before the kill.
type webDescription struct {
	Hosts map[string]hostDescription `json:"hosts"`
}

// A hostDescription is one host of the web.
type hostDescription struct {
	Robots   *robotsDescription         `json:"robots"`
	Pages    map[string]pageDescription `json:"pages"`
	Forms    map[string]pageDescription `json:"forms"`    // answers to POST
	Numbered int                        `json:"numbered"` // pages /1 to /Numbered
	Cookie   string                     `json:"cookie"`   // required by numbered pages
	HTTPS    bool                       `json:"https"`    // http redirects to https
}

// A robotsDescription is a robots.txt, and its requirements in the form of the judge.
type robotsDescription struct {
	pageDescription
	Disallow []string `json:"disallow"`
	DelayS   int      `json:"delay_s"`
	Clean    []string `json:"clean"`
}

// A pageDescription is the answer to requests for one path.
type pageDescription struct {
	Status     int               `json:"status"`
	Type       string            `json:"type"`
	Body       string            `json:"body"`
	Header     map[string]string `json:"header"`
	Location   string            `json:"location"`
	ETag       string            `json:"etag"`
	Links      []string          `json:"links"`
	Forms      []string          `json:"forms"`
	Numbered   int               `json:"numbered"` // links to /1 to /Numbered
	Hang       bool              `json:"hang"`
	BeforeKill *pageDescription  `json:"before_kill"` // the answer until the kill; null: the same
}

// readWeb returns the web of the crawl that was killed at the given time.
func readWeb(t *testing.T, killed time.Time) *crawltest.Web {
	t.Helper()
	text, err := os.ReadFile("testdata/past/web.json")
	if err != nil {
		t.Fatal(err)
	}
	var w webDescription
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	var sites []crawltest.Site
	for name, h := range w.Hosts {
		sites = append(sites, h.newSite(name, killed))
	}
	return crawltest.New(sites...)
}

func (h hostDescription) newSite(name string, killed time.Time) crawltest.Site {
	s := crawltest.Site{Host: name, Pages: map[string]crawltest.PageFunc{},
		OtherMethodPages: map[string]crawltest.PageFunc{}}
	if h.Robots != nil {
		s.Robots = func(at time.Time) crawltest.RobotsSpec { return h.Robots.crawltestRobots(name, at.Before(killed)) }
	}
	for path, p := range h.Pages {
		s.Pages[path] = h.newPage(name, path, p, killed)
	}
	for n := range h.Numbered {
		path := fmt.Sprintf("/%d", n+1)
		s.Pages[path] = h.newPage(name, path, pageDescription{}, killed)
	}
	for path, p := range h.Forms {
		s.OtherMethodPages[path] = func(r crawltest.PageRequest) crawltest.Response {
			return p.response(name, r.ReceivedAt.Before(killed))
		}
	}
	return s
}

// crawltestRobots returns the robots.txt as it is at the given time.
func (r *robotsDescription) crawltestRobots(host string, beforeKill bool) crawltest.RobotsSpec {
	answer := r.pageDescription
	answer.Type = "text/plain"
	return crawltest.RobotsSpec{
		Response:   answer.response(host, beforeKill),
		CrawlDelay: time.Duration(r.DelayS) * time.Second,
		IsDisallowed: func(path string) bool {
			for _, prefix := range r.Disallow {
				if strings.HasPrefix(path, prefix) {
					return true
				}
			}
			return false
		},
	}
}

func (h hostDescription) newPage(name, path string, p pageDescription, killed time.Time) crawltest.PageFunc {
	return func(r crawltest.PageRequest) crawltest.Response {
		switch {
		case h.HTTPS && r.Header.Get(overTLSHeader) == "":
			return crawltest.Redirect(http.StatusMovedPermanently, "https://"+name+r.Path)
		case h.Cookie != "" && path != "/" && !strings.HasPrefix(path, "/.") &&
			!strings.Contains(r.Header.Get("Cookie"), h.Cookie):
			return crawltest.Status(http.StatusForbidden)
		}
		return p.response(name, r.ReceivedAt.Before(killed))
	}
}

// response returns the answer before or after the kill.
func (p pageDescription) response(host string, beforeKill bool) crawltest.Response {
	if beforeKill && p.BeforeKill != nil {
		return p.BeforeKill.response(host, beforeKill)
	}
	a := crawltest.Response{Status: p.Status, Header: http.Header{}, Body: p.Body}
	a.Header.Set("Content-Type", p.Type)
	if p.Type == "" {
		a.Header.Set("Content-Type", "text/html; charset=utf-8")
		a.Body = p.renderHTML(host)
	}
	for key, value := range p.Header {
		a.Header.Set(key, value)
	}
	if p.Location != "" {
		a.Header.Set("Location", p.Location)
	}
	if p.ETag != "" {
		a.Header.Set("ETag", `"`+p.ETag+`"`)
	}
	if p.Hang {
		a.Fault = crawltest.Hang
	}
	return a
}

func (p pageDescription) renderHTML(host string) string {
	var b strings.Builder
	b.WriteString("<title>A page of " + host + "</title>")
	for _, l := range p.Links {
		fmt.Fprintf(&b, "<a href=%q>a link</a>", l)
	}
	for n := range p.Numbered { // absolute links, on http
		fmt.Fprintf(&b, "<a href=\"http://%s/%d\">a link</a>", host, n+1)
	}
	for _, f := range p.Forms {
		fmt.Fprintf(&b, "<form method=post action=%q></form>", f)
	}
	return b.String()
}

// overTLSHeader marks requests that came over TLS, because the sites of crawltest do not see the
// scheme.
const overTLSHeader = "X-Over-TLS"

// A tlsMarkingTransport is a transport to a web in memory that sets overTLSHeader.
type tlsMarkingTransport struct{ web *crawltest.Web }

func (m tlsMarkingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" {
		r = r.Clone(r.Context())
		r.Header.Set(overTLSHeader, "yes")
	}
	return m.web.RoundTrip(r)
}

// A webServer serves the web on loopback, over HTTP and HTTPS.
type webServer struct {
	httpServer, httpsServer *httptest.Server
	caFile                  string // file with the certificate, for SSL_CERT_FILE
}

func startWebServers(t *testing.T, web http.Handler) *webServer {
	t.Helper()
	s := &webServer{caFile: filepath.Join(t.TempDir(), "ca.pem")}
	s.httpServer = httptest.NewServer(web)
	t.Cleanup(s.httpServer.Close)
	s.httpsServer = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set(overTLSHeader, "yes")
		web.ServeHTTP(w, r)
	}))
	t.Cleanup(s.httpsServer.Close)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.httpsServer.Certificate().Raw})
	if err := os.WriteFile(s.caFile, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// connectToRules returns the rules of fetch.connect_to that send all requests to s.
func (s *webServer) connectToRules() []string {
	plain, tls := s.httpServer.Listener.Addr().String(), s.httpsServer.Listener.Addr().String()
	return []string{":80:" + plain, ":8080:" + plain, ":443:" + tls}
}
