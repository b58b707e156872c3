package httpfetch_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// A rawResponse is what a rawServer sends for a page: these bytes, after which the server closes the
// connection or stays silent.
type rawResponse struct {
	bytes        string
	close, stall bool
}

// A rawServer is a server that sends raw bytes and records the bytes it receives.
type rawServer struct {
	net.Listener
	pages map[string]rawResponse

	mu       sync.Mutex        // guards requests and conns
	requests map[string]string // by path
	conns    int
}

// startRawServer starts a rawServer, with TLS if tlsConfig is not nil.
func startRawServer(t *testing.T, pages map[string]rawResponse, tlsConfig *tls.Config) *rawServer {
	t.Helper()
	l := testlisten.Listen(t, "127.0.0.1:0")
	if tlsConfig != nil {
		l = tls.NewListener(l, tlsConfig)
	}
	w := &rawServer{Listener: l, pages: pages, requests: map[string]string{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serveConn(c) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return w
}

func (w *rawServer) serveConn(c net.Conn) {
	defer c.Close()
	w.mu.Lock()
	w.conns++
	w.mu.Unlock()
	for in := bufio.NewReader(c); ; {
		var request strings.Builder
		for !strings.HasSuffix(request.String(), "\r\n\r\n") {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			request.WriteString(line)
		}
		path := strings.Fields(request.String())[1]
		w.mu.Lock()
		w.requests[path] = request.String()
		w.mu.Unlock()
		page := w.pages[path]
		for part := []byte(page.bytes); len(part) > 0; { // in pieces, which the client reads one by one
			n := min(len(part), 700)
			if _, err := c.Write(part[:n]); err != nil {
				return
			}
			part = part[n:]
		}
		if page.stall {
			_, _ = in.ReadByte() // until the client closes the connection
		}
		if page.close || page.stall {
			return
		}
	}
}

// requestFor returns the bytes received with the request for path.
func (w *rawServer) requestFor(path string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests[path]
}

// exchangeRecorder is an Archive that keeps exchanges in memory.
type exchangeRecorder struct {
	mu        sync.Mutex                      // guards exchanges
	exchanges map[string]*decorum.RawExchange // by URL
}

func (k *exchangeRecorder) Record(_ context.Context, v *crawler.Visit) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.exchanges[v.URL().String()] = v.Exchange
	return nil
}

// captureExchanges crawls the pages of w and returns the captured exchanges by path.
func captureExchanges(t *testing.T, site string, w *rawServer, cfg httpfetch.Config) map[string]*decorum.RawExchange {
	t.Helper()
	cfg.ConnectToRules, cfg.AllowPrivate, cfg.CaptureExchanges = []string{"::" + w.Addr().String()}, true, true
	cfg.RootCAs = x509.NewCertPool()
	cfg.RootCAs.AddCert(tlsServer().Certificate())
	fetcher := newFetcher(t, cfg)
	defer fetcher.CloseIdleConnections()
	var pages []string
	for path := range w.pages {
		if path != "/robots.txt" {
			pages = append(pages, site+path)
		}
	}
	crawl := newCrawl(t, fetcher, pages...)
	crawl.Settings.MaxAttempts, crawl.Settings.Workers = 1, 1
	crawl.Policy.Delay, crawl.Policy.AdaptiveFactor = time.Millisecond, -1
	crawl.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
	archive := &exchangeRecorder{exchanges: map[string]*decorum.RawExchange{}}
	crawl.Archive = archive
	if err := crawl.Run(t.Context()); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
		t.Fatal(err)
	}
	byPath := map[string]*decorum.RawExchange{}
	for url, x := range archive.exchanges {
		byPath[strings.TrimPrefix(url, site)] = x
	}
	return byPath
}

var tlsServer = sync.OnceValue(func() *httptest.Server {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	s.Close()
	return s
})

func gzipString(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

func okResponse(header, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", header, len(body), body)
}

// TestCaptureByteForByte: the captured exchange equals the bytes on the wire (inside TLS), on
// connections that carry many exchanges.
func TestCaptureByteForByte(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	pages := map[string]rawResponse{
		"/robots.txt": {bytes: okResponse("Content-Type: text/plain\r\n", "User-agent: *\nDisallow:\n")},
		"/spacing": {bytes: "HTTP/1.1 200  Fine by me\r\ncontent-LENGTH:2\r\nX-b:  1  \r\nX-A: \t2\r\nx-B: " +
			"3\r\nX-Fold: a\r\n b\r\n\r\nhi"},
		"/linefeeds": {bytes: "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"},
		"/long":      {bytes: okResponse("", long)},
		"/gzip":      {bytes: okResponse("Content-Encoding: gzip\r\n", gzipString(long))},
		"/chunked": {bytes: "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0007\r\n, world\r\n0;end\r\nX-Sum: 1\r\n\r\n"},
		"/chunkedgzip": {bytes: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: "+
			"chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(gzipString(long)), gzipString(long))},
		"/nolength": {bytes: "HTTP/1.0 200 OK\r\n\r\n" + long, close: true},
		"/early":    {bytes: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + okResponse("", "hi")},
		"/missing":  {bytes: strings.Replace(okResponse("", "not here"), "200 OK", "404 No", 1)},
		"/moved":    {bytes: "HTTP/1.1 302 Over There\r\nLocation: /spacing\r\nContent-Length: 0\r\n\r\n"},
	}
	for _, tt := range []struct {
		site   string
		secure *tls.Config
	}{
		{"http://example.com", nil},
		{"https://example.com", &tls.Config{Certificates: tlsServer().TLS.Certificates,
			NextProtos: []string{"h2", "http/1.1"}}},
	} {
		t.Run(tt.site, func(t *testing.T) {
			w := startRawServer(t, pages, tt.secure)
			got := captureExchanges(t, tt.site, w, httpfetch.Config{})
			for path, page := range pages {
				x := got[path]
				if x == nil {
					t.Errorf("%s was not captured (request: %q)", path, w.requestFor(path))
					continue
				}
				if string(x.RawResponse) != page.bytes || x.Truncation != decorum.NotTruncated {
					t.Errorf("%s: response %.200q (%v), want %.200q", path, x.RawResponse, x.Truncation, page.bytes)
				}
				if string(x.RawRequest) != w.requestFor(path) || len(x.RawRequest) == 0 {
					t.Errorf("%s: request %q, want %q", path, x.RawRequest, w.requestFor(path))
				}
				if x.Addr.String() != w.Addr().String() {
					t.Errorf("%s: address %v, want %v", path, x.Addr, w.Addr())
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.conns > 3 {
				t.Errorf("%d connections: they were not kept open", w.conns)
			}
		})
	}
}

// TestCaptureSaysWhyItWasCut: the exchange of an incomplete response has its truncation reason.
func TestCaptureSaysWhyItWasCut(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for path, tt := range map[string]struct {
		rawResponse
		cut decorum.TruncationReason
	}{
		"/long": {rawResponse{bytes: okResponse("", strings.Repeat("x", 50*limit))}, decorum.TruncatedByLength},
		"/slow": {rawResponse{bytes: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi", stall: true},
			decorum.TruncatedByTime},
		"/silent": {rawResponse{stall: true}, decorum.TruncatedByTime},
		"/hangs-up": {rawResponse{bytes: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi", close: true},
			decorum.TruncatedByDisconnect},
		"/at-once": {rawResponse{close: true}, decorum.TruncatedByDisconnect},
		"/unwanted": {rawResponse{bytes: okResponse("Content-Type: video/mp4\r\n", strings.Repeat("x", 50*limit))},
			decorum.TruncatedUnspecified},
		"/bad-chunks": {rawResponse{bytes: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
			close: true}, decorum.TruncatedUnspecified},
	} {
		t.Run(path, func(t *testing.T) {
			w := startRawServer(t, map[string]rawResponse{"/robots.txt": {bytes: okResponse("", "")},
				path: tt.rawResponse}, nil)
			x := captureExchanges(t, "http://example.com", w,
				httpfetch.Config{MaxBody: limit, Timeout: 300 * time.Millisecond,
					ContentTypes: []string{"text/html"}})[path]
			if x == nil {
				t.Fatal("nothing was captured")
			}
			if x.Truncation != tt.cut || !strings.HasPrefix(tt.bytes, string(x.RawResponse)) {
				t.Errorf("%q, %v; want a beginning of %.100q, %v", x.RawResponse, x.Truncation, tt.bytes, tt.cut)
			}
			if string(x.RawRequest) != w.requestFor(path) {
				t.Errorf("request %q, want %q", x.RawRequest, w.requestFor(path))
			}
		})
	}
}

// TestCaptureIsBounded: an endless response that never yields a body, such as a stream of empty
// blocks, is captured up to the limit of a body and maxWireOverhead.
func TestCaptureIsBounded(t *testing.T) {
	const limit = 1000
	empty := "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + strings.Repeat("\x00\x00\x00\xff\xff", 2<<20/5)
	w := startRawServer(t, map[string]rawResponse{"/robots.txt": {bytes: okResponse("", "")},
		"/": {bytes: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + empty, close: true}}, nil)
	x := captureExchanges(t, "http://example.com", w, httpfetch.Config{MaxBody: limit})["/"]
	if x == nil || x.Truncation != decorum.TruncatedByLength || len(x.RawResponse) < limit ||
		len(x.RawResponse) > limit+1<<20 {
		t.Errorf("%d bytes, %v; want %d to %d, %v", len(x.RawResponse), x.Truncation, limit,
			limit+1<<20, decorum.TruncatedByLength)
	}
}
