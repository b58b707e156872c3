package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A description is the content of web.json.
type description struct {
	Hosts map[string]host `json:"hosts"`
	// The crawl or the daemon is killed after these requests have come.
	Seen       []string `json:"seen"`
	DaemonSeen []string `json:"daemon_seen"`
}

type host struct {
	Robots   *robots         `json:"robots"`
	Pages    map[string]page `json:"pages"`
	Forms    map[string]page `json:"forms"`    // answers to POST
	Numbered int             `json:"numbered"` // pages /1 to /Numbered
	Cookie   string          `json:"cookie"`   // required by numbered pages
	HTTPS    bool            `json:"https"`    // http redirects to https
}

type robots struct {
	page
	Disallow []string `json:"disallow"`
	DelayS   int      `json:"delay_s"`
	Clean    []string `json:"clean"`
}

type page struct {
	Status   int               `json:"status"`
	Type     string            `json:"type"`
	Body     string            `json:"body"`
	Header   map[string]string `json:"header"`
	Location string            `json:"location"`
	ETag     string            `json:"etag"`
	Links    []string          `json:"links"`
	Forms    []string          `json:"forms"`
	Numbered int               `json:"numbered"` // links to /1 to /Numbered
	Hang     bool              `json:"hang"`
	// BeforeKill is the answer until the crawl is killed; null: the same as later.
	BeforeKill *page `json:"before_kill"`
}

func readDescription(file string) (d description, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d, err
}

// web returns the web as it is before the crawl is killed.
func (d description) web() *crawltest.Web {
	var sites []crawltest.Site
	for name, h := range d.Hosts {
		sites = append(sites, h.site(name))
	}
	return crawltest.New(sites...)
}

func (h host) site(name string) crawltest.Site {
	s := crawltest.Site{Host: name, Pages: map[string]crawltest.PageFunc{},
		OtherMethodPages: map[string]crawltest.PageFunc{}}
	if h.Robots != nil {
		answer := h.Robots.page
		answer.Type = "text/plain"
		s.Robots = crawltest.StaticRobots(crawltest.RobotsSpec{Response: answer.answer(name)})
	}
	for path, p := range h.Pages {
		s.Pages[path] = h.page(name, path, p)
	}
	for n := range h.Numbered {
		path := fmt.Sprintf("/%d", n+1)
		s.Pages[path] = h.page(name, path, page{})
	}
	for path, p := range h.Forms {
		s.OtherMethodPages[path] = func(crawltest.PageRequest) crawltest.Response { return p.answer(name) }
	}
	return s
}

func (h host) page(name, path string, p page) crawltest.PageFunc {
	return func(r crawltest.PageRequest) crawltest.Response {
		switch {
		case h.HTTPS && r.Header.Get(overTLS) == "":
			return crawltest.Redirect(http.StatusMovedPermanently, "https://"+name+r.Path)
		case h.Cookie != "" && path != "/" && !strings.HasPrefix(path, "/.") &&
			!strings.Contains(r.Header.Get("Cookie"), h.Cookie):
			return crawltest.Status(http.StatusForbidden)
		}
		return p.answer(name)
	}
}

// answer returns the answer until the crawl is killed.
func (p page) answer(name string) crawltest.Response {
	if p.BeforeKill != nil {
		return p.BeforeKill.answer(name)
	}
	body := strings.ReplaceAll(p.Body, "$NOW", time.Now().UTC().Format(time.RFC3339))
	a := crawltest.Response{Status: p.Status, Header: http.Header{}, Body: body}
	a.Header.Set("Content-Type", p.Type)
	if p.Type == "" {
		a.Header.Set("Content-Type", "text/html; charset=utf-8")
		a.Body = p.html(name)
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

func (p page) html(name string) string {
	var b strings.Builder
	b.WriteString("<title>A page of " + name + "</title>")
	for _, l := range p.Links {
		fmt.Fprintf(&b, "<a href=%q>a link</a>", l)
	}
	for n := range p.Numbered { // absolute links, on http
		fmt.Fprintf(&b, "<a href=\"http://%s/%d\">a link</a>", name, n+1)
	}
	for _, f := range p.Forms {
		fmt.Fprintf(&b, "<form method=post action=%q></form>", f)
	}
	return b.String()
}

// overTLS is a header that marks requests that came over TLS, because the sites of crawltest do not
// see the scheme.
const overTLS = "X-Over-TLS"

// servers serve a web over HTTP and HTTPS.
type servers struct{ plain, tls *httptest.Server }

func serve(web http.Handler) servers {
	s := servers{
		plain: httptest.NewServer(web),
		tls: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set(overTLS, "yes")
			web.ServeHTTP(w, r)
		})),
	}
	return s
}

// connectTo returns the flags that send all requests to the servers.
func (s servers) connectTo() []string {
	var flags []string
	for port, to := range map[string]net.Addr{"80": s.plain.Listener.Addr(), "8080": s.plain.Listener.Addr(),
		"443": s.tls.Listener.Addr()} {
		flags = append(flags, fmt.Sprintf("--connect-to=:%s:%s", port, to))
	}
	return flags
}

// await returns when all of the requests have come.
func await(web *crawltest.Web, wanted []string) error {
	deadline := time.Now().Add(25 * time.Second) // earlier than the timeout of a request that hangs
	for {
		seen := map[string]bool{}
		for _, x := range web.Log() {
			seen[x.Method+" "+x.URL] = true
		}
		var missing []string
		for _, w := range wanted {
			if !seen[w] {
				missing = append(missing, w)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the crawl has not asked for %q", missing)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
