package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	goodHosts            = 40
	goodDelay            = time.Second
	bombHosts            = 64
	bombSitemapBytes     = 50 << 20 // bytes of a bomb of a sitemap, as decoded: the limit of sitemaps.org
	bombPageBytes        = 10 << 20 // the same of a page: decorum's limit
	nameHosts            = 20_000
	plainHosts           = 2_000
	wildcardLinksPerPage = 50 // host names that a page of the wildcard domain links to
)

// A web serves the good and the hostile hosts on one loopback port.
type web struct {
	addr   string
	server *http.Server
	bombs  map[string]*bomb // by path

	mu                  sync.Mutex           // guards what follows
	goodHostVisits      int                  // to pages of good hosts
	lastRequestTimes    map[string]time.Time // request to each good host
	shortestGoodHostGap time.Duration        // the shortest between two requests to one good host
}

// startWeb serves a web until Close.
func startWeb() (*web, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &web{
		addr: listener.Addr().String(), lastRequestTimes: map[string]time.Time{}, shortestGoodHostGap: time.Hour,
		bombs: map[string]*bomb{
			"/sitemap.xml": newBomb("application/xml", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`, bombSitemapBytes, "</urlset>"),
			"/page":        newBomb("text/html", "<!doctype html>", bombPageBytes, ""),
		},
	}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go w.server.Serve(listener) // returns when Close is called
	return w, nil
}

func (w *web) Close() error { return w.server.Close() }

// ServeHTTP answers by the first label of the host name.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ":")
	kind, _, _ := strings.Cut(host, "-")
	switch {
	case kind == "good":
		w.serveGoodHost(rw, r, host)
	case kind == "bomb":
		w.serveBombHost(rw, r)
	case r.URL.Path == "/robots.txt":
		http.NotFound(rw, r)
	case strings.HasSuffix(host, ".wild.example"):
		writeLinkPage(rw, subdomainLinks(host, r.URL.Path))
	case host == "names.example":
		writeLinkPage(rw, manyDomainLinks())
	default: // a host of names, or of plain
		writeLinkPage(rw, []string{linkedPath(r.URL.Path, 0), linkedPath(r.URL.Path, 1)})
	}
}

// serveGoodHost answers for a good host and notes its pace. Each page links to two
// others.
func (w *web) serveGoodHost(rw http.ResponseWriter, r *http.Request, host string) {
	robots := r.URL.Path == "/robots.txt"
	w.recordGoodHostRequest(host, robots)
	if robots {
		io.WriteString(rw, "User-agent: *\nDisallow: /private/\n")
		return
	}
	writeLinkPage(rw, []string{linkedPath(r.URL.Path, 0), linkedPath(r.URL.Path, 1)})
}

// recordGoodHostRequest notes a request to a good host. The gaps are from request to request, and so
// longer than the crawler's delay by the time that an answer takes.
func (w *web) recordGoodHostRequest(host string, robots bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if last, ok := w.lastRequestTimes[host]; ok {
		w.shortestGoodHostGap = min(w.shortestGoodHostGap, now.Sub(last))
	}
	w.lastRequestTimes[host] = now
	if !robots {
		w.goodHostVisits++
	}
}

// serveBombHost answers for a host of bombs: its seed is one, and so is the sitemap that
// its robots.txt names.
func (w *web) serveBombHost(rw http.ResponseWriter, r *http.Request) {
	b := w.bombs[r.URL.Path]
	switch {
	case r.URL.Path == "/robots.txt":
		fmt.Fprintf(rw, "User-agent: *\nAllow: /\nSitemap: http://%s/sitemap.xml\n", r.Host)
	case b != nil:
		b.countRequestAndAwaitAll(r.Context())
		rw.Header().Set("Content-Type", b.contentType)
		rw.Header().Set("Content-Encoding", "gzip")
		rw.Write(b.gzip)
	default:
		http.NotFound(rw, r)
	}
}

// countGoodVisitsDuring waits for the first visit to a good host and returns how many visits the
// good hosts had in the time d after it.
func (w *web) countGoodVisitsDuring(ctx context.Context, d time.Duration) (int, error) {
	limit, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no good host was visited within a minute"))
	defer cancel()
	for w.goodHostVisitCount() == 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit.Done():
			return 0, context.Cause(limit)
		}
	}
	before := w.goodHostVisitCount()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	return w.goodHostVisitCount() - before, nil
}

// goodHostVisitCount returns how many visits the pages of the good hosts had.
func (w *web) goodHostVisitCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.goodHostVisits
}

// minGoodHostGap returns the shortest time between two requests to one
// good host.
func (w *web) minGoodHostGap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shortestGoodHostGap
}

// A bomb is an answer that is small as sent and large when decoded. The server holds it
// back until the crawl has requested the bombs of all hosts, so that all are sent at
// the same moment.
type bomb struct {
	contentType       string
	gzip              []byte
	allHostsRequested chan struct{} // closed when all were asked

	mu       sync.Mutex // guards requests
	requests int
}

// newBomb returns a bomb of size bytes: head, spaces, and tail.
func newBomb(contentType, head string, size int, tail string) *bomb {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	io.WriteString(z, head)
	spaces := bytes.Repeat([]byte(" "), 1024)
	for left := size - len(head) - len(tail); left > 0; left -= len(spaces) {
		z.Write(spaces[:min(left, len(spaces))])
	}
	io.WriteString(z, tail)
	z.Close() // a bytes.Buffer does not fail
	return &bomb{contentType: contentType, gzip: b.Bytes(), allHostsRequested: make(chan struct{})}
}

// countRequestAndAwaitAll returns when all hosts were asked, ctx is done, or 5 seconds are over: a crawler
// need not ask them all at once.
func (b *bomb) countRequestAndAwaitAll(ctx context.Context) {
	b.mu.Lock()
	if b.requests++; b.requests == bombHosts {
		close(b.allHostsRequested)
	}
	b.mu.Unlock()
	select {
	case <-b.allHostsRequested:
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
	}
}

// writeLinkPage answers with an HTML page that has links.
func writeLinkPage(rw http.ResponseWriter, links []string) {
	rw.Header().Set("Content-Type", "text/html")
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<title>A page</title>\n")
	for _, link := range links {
		fmt.Fprintf(&b, "<p><a href=%q>%[1]s</a></p>\n", link)
	}
	rw.Write(b.Bytes())
}

// linkedPath returns the path of the i-th page that the page of a path links to.
func linkedPath(path string, i int) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(path, "/")) // the root is page 0
	return "/" + strconv.Itoa(2*n+1+i)
}

// subdomainLinks returns links to hosts of the wildcard domain that no other page links
// to.
func subdomainLinks(host, path string) []string {
	label, _, _ := strings.Cut(host, ".")
	links := make([]string, 0, wildcardLinksPerPage)
	for i := range wildcardLinksPerPage {
		links = append(links, fmt.Sprintf("http://%s-%d.wild.example/", label[:min(len(label), 50)], i))
	}
	return links
}

// manyDomainLinks returns links to names hosts, each in a domain of its own.
func manyDomainLinks() []string {
	links := make([]string, nameHosts)
	for i := range links {
		links[i] = fmt.Sprintf("http://name-%d.example/", i)
	}
	return links
}
