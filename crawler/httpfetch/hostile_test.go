package httpfetch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testlisten"
	"github.com/decorum-crawler/decorum/politeness"
)

// hostileConfig configures the fetchers of the tests with hostile servers.
var hostileConfig = httpfetch.Config{
	UserAgent: userAgent, AllowPrivate: true, MaxBody: 1 << 20, MaxHeaderBytes: 16 << 10,
	Timeout: 5 * time.Second, FirstByteTimeout: 2 * time.Second,
}

// offeringHTTP2 returns cfg with HTTP/2, with which the transport is that of net/http.
func offeringHTTP2(cfg httpfetch.Config) httpfetch.Config {
	cfg.HTTP2 = true
	return cfg
}

// withShortTimeouts returns cfg with short time limits, for slow servers.
func withShortTimeouts(cfg httpfetch.Config) httpfetch.Config {
	cfg.Timeout, cfg.FirstByteTimeout = 2*time.Second, time.Second
	return cfg
}

// A hostileServer is how a server misuses a connection on which a page was requested, and the
// outcome that the visit must have.
type hostileServer struct {
	name    string
	isSlow  bool // the visit ends at a time limit
	respond func(io.Writer)
	err     string // part of the error; empty: the body was cut
	kind    decorum.ErrorKind
}

const okHeader = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// sendAndRepeat returns a server that sends s and then more, endlessly.
func sendAndRepeat(s, more string) func(io.Writer) {
	return func(w io.Writer) {
		if more != "" {
			more = strings.Repeat(more, 1+4096/len(more))
		}
		_, err := io.WriteString(w, s)
		for err == nil && more != "" {
			_, err = io.WriteString(w, more)
		}
	}
}

// sendSlowly returns a server that sends s and then more, one byte at a time with pauses.
func sendSlowly(s, more string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, s)
		for i := 0; err == nil; i++ {
			time.Sleep(20 * time.Millisecond)
			_, err = io.WriteString(w, more[i%len(more):][:1])
		}
	}
}

// sendEncodedZeros returns a server that sends an encoded body of zeros.
func sendEncodedZeros(t *testing.T, codings ...string) func(io.Writer) {
	body := encodeBody(t, make([]byte, 64<<20), codings...)
	return sendAndRepeat(fmt.Sprintf("%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", okHeader,
		strings.Join(codings, ", "), len(body), body), "")
}

func hostileServers(t *testing.T) []hostileServer {
	const chunked = okHeader + "Transfer-Encoding: chunked\r\n\r\n"
	const tooLong = "the header of the answer is longer than 16384 bytes"
	return []hostileServer{
		{name: "10 GB", respond: sendAndRepeat(okHeader+"Content-Length: 10000000000\r\n\r\n", "spam and ")},
		{name: "a body without length or end", respond: sendAndRepeat(okHeader+"\r\n", "spam and ")},
		{name: "chunks without end", respond: sendAndRepeat(chunked, "5\r\nspam \r\n")},
		{name: "a gzip bomb", respond: sendEncodedZeros(t, "gzip")},
		{name: "a zstd bomb", respond: sendEncodedZeros(t, "zstd")},
		{name: "bombs in each other", respond: sendEncodedZeros(t, "br", "zstd", "gzip")},
		{name: "gzip of nothing, without end",
			respond: sendAndRepeat(okHeader+"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
				"\x00\x00\x00\xff\xff"),
			err: "longer encoded than a decoded body may be", kind: decorum.Malformed},
		{name: "zstd with a window of 2 TB",
			respond: sendAndRepeat(okHeader+
				"Content-Encoding: zstd\r\nContent-Length: 9\r\n\r\n\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00", ""),
			err: "cannot be decoded (Content-Encoding: zstd): window size exceeded", kind: decorum.Malformed},
		{name: "headers without end", respond: sendAndRepeat(okHeader, "X-Spam: and eggs\r\n"),
			err: tooLong, kind: decorum.Malformed},
		{name: "a header without end", respond: sendAndRepeat(okHeader+"X-Spam: ", "and eggs "),
			err: tooLong, kind: decorum.Malformed},
		{name: "interim answers without end", respond: sendAndRepeat("", "HTTP/1.1 103 Early Hints\r\n\r\n"),
			err: tooLong, kind: decorum.Malformed},
		{name: "an answer that never begins", isSlow: true, respond: func(w io.Writer) {
			io.Copy(io.Discard, w.(io.Reader))
		}, err: "no answer within 1s"},
		{name: "a header byte by byte", isSlow: true, respond: sendSlowly(okHeader, "X-Slow: loris\r\n"),
			err: "no answer within 1s"},
		{name: "a body byte by byte", isSlow: true, respond: sendSlowly(okHeader+"\r\n", "slow "),
			err: "no whole answer within 2s"},
		{name: "no chunks", respond: sendAndRepeat(chunked+"spam\r\n", ""),
			err: "the chunks of the body are malformed", kind: decorum.Malformed},
		{name: "a chunk of negative length", respond: sendAndRepeat(chunked+"-5\r\nspam \r\n", ""),
			err: "the chunks of the body are malformed", kind: decorum.Malformed},
		{name: "a chunk longer than can be", respond: sendAndRepeat(chunked+"ffffffffffffffffff\r\nspam", ""),
			err: "the chunks of the body are malformed", kind: decorum.Malformed},
		{name: "chunk extensions without end", respond: sendAndRepeat(chunked+"5;", "spam"),
			err: "the chunks of the body are malformed", kind: decorum.Malformed},
		{name: "trailers without end", respond: sendAndRepeat(chunked+"0\r\n", "X-Spam: and eggs\r\n"),
			err: "the chunks of the body are malformed", kind: decorum.Malformed},
		{name: "the last chunk is missing", respond: sendAndRepeat(chunked+"5\r\nspam \r\n", ""),
			err: "the connection ended before the body did"},
		{name: "shorter than its Content-Length", respond: sendAndRepeat(okHeader+"Content-Length: 10\r\n\r\nspam ",
			""), err: "the connection ended after 5 of the 10 bytes of the body"},
		{name: "two Content-Lengths", respond: sendAndRepeat(okHeader+"Content-Length: 5\r\nContent-Length: "+
			"7\r\n\r\nspam and", ""), err: "the answer is not valid HTTP", kind: decorum.Malformed},
		{name: "a negative Content-Length", respond: sendAndRepeat(okHeader+"Content-Length: -5\r\n\r\nspam", ""),
			err: "the answer is not valid HTTP", kind: decorum.Malformed},
		{name: "no HTTP", respond: sendAndRepeat("SSH-2.0-OpenSSH_9.2p1\r\n", ""),
			err: "the answer is not valid HTTP", kind: decorum.Malformed},
		{name: "status 000", respond: sendAndRepeat("HTTP/1.1 000 None\r\nContent-Length: 4\r\n\r\nspam", ""),
			err: "less than 100", kind: decorum.Malformed},
		{name: "status 099", respond: sendAndRepeat("HTTP/1.1 099 None\r\nContent-Length: 4\r\n\r\nspam", ""),
			err: "less than 100", kind: decorum.Malformed},
		{name: "nothing", respond: sendAndRepeat("", ""), err: "EOF"},
		{name: "another protocol", respond: func(w io.Writer) {
			io.WriteString(w, switchingProtocols)
			io.Copy(io.Discard, w.(io.Reader)) // until the crawl closes the connection
		}, err: "the server answers 101", kind: decorum.Malformed},
	}
}

// start serves on loopback and returns the address. robots.txt is answered with 404.
func (h hostileServer) start(t *testing.T) string {
	t.Helper()
	l := testlisten.Listen(t, "127.0.0.1:0")
	go testlisten.Serve(l, h.serveConn)
	return l.Addr().String()
}

func (h hostileServer) serveConn(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	switch {
	case err != nil:
	case r.URL.Path == "/robots.txt":
		io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	default:
		h.respond(c)
	}
}

// totalAllocated returns how many bytes this process has allocated since it started.
func totalAllocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestHostileServers: a visit to each server ends at a limit with a specific error, and allocates a
// bounded amount of memory in this process, which includes the servers.
func TestHostileServers(t *testing.T) { testHostileServers(t, hostileConfig) }

// TestHostileServersWithNetHTTP: the same with the transport of net/http.
func TestHostileServersWithNetHTTP(t *testing.T) { testHostileServers(t, offeringHTTP2(hostileConfig)) }

func testHostileServers(t *testing.T, cfg httpfetch.Config) {
	for _, h := range hostileServers(t) {
		t.Run(h.name, func(t *testing.T) {
			cfg := cfg
			if h.isSlow {
				t.Parallel() // slow cases run together, after all fast ones
				cfg = withShortTimeouts(cfg)
			}
			address := h.start(t)
			before := totalAllocated()
			res, err := fetchPage(t, cfg, "http://"+address+"/page")
			switch {
			case h.err == "" && (err != nil || !res.BodyLimitExceeded || int64(len(res.Body)) != cfg.MaxBody):
				t.Errorf("got %v; want a body that was cut at %d bytes", err, cfg.MaxBody)
			case h.err != "" && (err == nil || !strings.Contains(err.Error(), h.err)):
				t.Errorf("got %v, want an error that says %q", err, h.err)
			case errors.Is(err, decorum.Malformed) != (h.kind == decorum.Malformed):
				t.Errorf("%v is of the wrong kind", err)
			}
			if used := totalAllocated() - before; used > 64<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

// TestMoreThanItsContentLength: data that follows a body is not part of it, and closes the
// connection before the next visit, which comes later because of the host's delay.
func TestMoreThanItsContentLength(t *testing.T) {
	l, closed := testlisten.Listen(t, "127.0.0.1:0"), make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, err = http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, okHeader+"Content-Length: 5\r\n\r\nhello"+okHeader+"Content-Length: 4\r\n\r\nevil")
			io.Copy(io.Discard, c) // until the crawl hangs up
			closed <- errors.Join(err, c.Close())
		}
	}()
	fetcher, err := httpfetch.New(hostileConfig)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		res, err := fetcher.Fetch(t.Context(), pageTicket(t, "http://"+l.Addr().String()+"/page"))
		if err != nil || string(res.Body) != "hello" {
			t.Errorf("got %v, %v; want hello", res, err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
}

// TestUnsolicitedResponse: what a server sends between two visits is not the response to the second, which
// goes over another connection, with and without TLS.
func TestUnsolicitedResponse(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	tlsConfig := ca.newServerConfig(t, "site.test", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	for _, scheme := range []string{"http", "https"} {
		l, sent := testlisten.Listen(t, "127.0.0.1:0"), make(chan error)
		if scheme == "https" {
			l = tls.NewListener(l, tlsConfig)
		}
		fetched := make(chan struct{})
		go testlisten.Serve(l, func(c net.Conn) {
			defer c.Close()
			_, err := http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, okHeader+"Content-Length: 5\r\n\r\nhello")
			<-fetched
			_, writeErr := io.WriteString(c, okHeader+"Content-Length: 4\r\n\r\nevil")
			sent <- errors.Join(err, writeErr)
			io.Copy(io.Discard, c) // until the crawl hangs up
		})
		fetcher := httpfetch.NewWithNetwork(connectingTo(t, hostileConfig, l.Addr().String()), nil, ca.certPool())
		for range 3 {
			if body := fetchBody(t, fetcher, scheme+"://site.test/"); body != "hello" {
				t.Fatalf("%s: got %q, want hello", scheme, body)
			}
			fetched <- struct{}{}
			must(t, <-sent)
		}
		fetcher.CloseIdleConnections()
	}
}

// TestHostileServersDoNotAffectOthers: a crawl that visits all hostile servers at once gets every
// page of a well-behaved host.
func TestHostileServersDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	var pages strings.Builder
	for i := range 20 {
		fmt.Fprintf(&pages, "<a href=/%d>x</a>", i)
	}
	good := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/robots.txt" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, pages.String())
	})
	cfg := withShortTimeouts(hostileConfig)
	seeds := []string{good}
	for i, h := range hostileServers(t) {
		host := fmt.Sprintf("h%d.test", i)
		seeds = append(seeds, "http://"+host+"/page")
		cfg.ConnectToRules = append(cfg.ConnectToRules, host+":80:"+h.start(t))
	}
	crawl := newCrawl(t, newFetcher(t, cfg), seeds...)
	crawl.Policy.Delay, crawl.Policy.AdaptiveFactor = politeness.NoDelay, -1
	crawl.Settings.MaxAttempts, crawl.Settings.Workers = 1, 32
	var mu sync.Mutex
	visits := map[string]int{}
	crawl.Hooks.Visited = func(v *crawler.Visit) {
		mu.Lock()
		defer mu.Unlock()
		if !v.Clearance.IsForRobots() {
			visits[v.URL().String()]++
		}
		if strings.HasPrefix(v.URL().String(), strings.TrimSuffix(good, "page")) &&
			!v.Clearance.IsForRobots() && !v.OK() {
			t.Errorf("%s of the good host: %v", v.URL(), v.Err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := crawl.Run(ctx); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
		t.Fatal(err)
	}
	for _, s := range seeds {
		if visits[s] != 1 {
			t.Errorf("%s was visited %d times, want once", s, visits[s])
		}
	}
	if want := len(seeds) + 20; len(visits) != want {
		t.Errorf("%d pages were visited, want %d", len(visits), want)
	}
}
