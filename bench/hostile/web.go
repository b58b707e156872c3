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
	bombSitemapBytes     = 50 << 20 // decoded bytes of a bomb that is a sitemap: the limit of sitemaps.org
	bombPageBytes        = 10 << 20 // decoded bytes of a bomb that is a page: decorum's limit
	nameHosts            = 20_000
	plainHosts           = 2_000
	wildcardLinksPerPage = 50 // host names that a page of the wildcard domain links to
)

// A web serves the good and the hostile hosts on one loopback port.
type web struct {
	addr   string
	server *http.Server
	bombs  map[string]*bomb // by path

	mu                  sync.Mutex           // guards goodHostVisits, lastRequestTimes and shortestGoodHostGap
	goodHostVisits      int                  // visits to pages of good hosts
	lastRequestTimes    map[string]time.Time // last request by good host
	shortestGoodHostGap time.Duration        // shortest time between two requests to one good host
}

// startWeb starts a web. It runs until Close.
func startWeb() (*web, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &web{
		addr: listener.Addr().String(), lastRequestTimes: map[string]time.Time{}, shortestGoodHostGap: time.Hour,
		bombs: map[string]*bomb{
			"/sitemap.xml": newBomb("application/xml", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`,
				bombSitemapBytes, "</urlset>"),
			"/page": newBomb("text/html", "<!doctype html>", bombPageBytes, ""),
		},
	}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go w.server.Serve(listener) // returns when Close is called
	return w, nil
}

// Close ends the server and closes its connections.
func (w *web) Close() error { return w.server.Close() }

// ServeHTTP implements http.Handler. The kind of a host is in its name.
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
	default: // a host of the projects names or plain
		writeLinkPage(rw, []string{linkedPath(r.URL.Path, 0), linkedPath(r.URL.Path, 1)})
	}
}

// serveGoodHost serves a good host and records the request. Each page links to two other pages.
func (w *web) serveGoodHost(rw http.ResponseWriter, r *http.Request, host string) {
	robots := r.URL.Path == "/robots.txt"
	w.recordGoodHostRequest(host, robots)
	if robots {
		io.WriteString(rw, "User-agent: *\nDisallow: /private/\n")
		return
	}
	writeLinkPage(rw, []string{linkedPath(r.URL.Path, 0), linkedPath(r.URL.Path, 1)})
}

// recordGoodHostRequest records a request to a good host. It measures gaps from request to request;
// these are longer than the crawler's delay by the time of a response.
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

// serveBombHost serves a host with bombs: the page that is its seed, and the sitemap in its
// robots.txt.
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

// countGoodVisitsDuring waits up to a minute for the first visit to a good host, and returns how
// many visits the good hosts received in the time d after it.
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

// goodHostVisitCount returns how many visits the good hosts have received.
func (w *web) goodHostVisitCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.goodHostVisits
}

// minGoodHostGap returns the shortest time between two requests to one good host.
func (w *web) minGoodHostGap() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shortestGoodHostGap
}

// A bomb is a response that is small when sent and large when decoded. The server delays it until
// the crawl has requested the bombs of all hosts, so that it sends them at the same moment.
type bomb struct {
	contentType       string
	gzip              []byte        // the compressed body
	allHostsRequested chan struct{} // closed when the bombs of all hosts have been requested

	mu       sync.Mutex // guards requests
	requests int
}

// newBomb returns a bomb of size decoded bytes: head, spaces, and tail.
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

// countRequestAndAwaitAll counts a request and returns when all hosts' bombs have been requested,
// ctx is done, or 5 seconds have passed, because a crawler need not request all of them at once.
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

// writeLinkPage writes an HTML page with links.
func writeLinkPage(rw http.ResponseWriter, links []string) {
	rw.Header().Set("Content-Type", "text/html")
	var b bytes.Buffer
	b.WriteString("<!doctype html>\n<title>A page</title>\n")
	for _, link := range links {
		fmt.Fprintf(&b, "<p><a href=%q>%[1]s</a></p>\n", link)
	}
	rw.Write(b.Bytes())
}

// linkedPath returns the path of the i-th page to which the page at path links.
func linkedPath(path string, i int) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(path, "/")) // the root is page 0
	return "/" + strconv.Itoa(2*n+1+i)
}

// subdomainLinks returns links from a page to further hosts of the wildcard domain.
func subdomainLinks(host, path string) []string {
	label, _, _ := strings.Cut(host, ".")
	links := make([]string, 0, wildcardLinksPerPage)
	for i := range wildcardLinksPerPage {
		links = append(links, fmt.Sprintf("http://%s-%d.wild.example/", label[:min(len(label), 50)], i))
	}
	return links
}

// manyDomainLinks returns links to nameHosts hosts, each in another domain.
func manyDomainLinks() []string {
	links := make([]string, nameHosts)
	for i := range links {
		links[i] = fmt.Sprintf("http://name-%d.example/", i)
	}
	return links
}
