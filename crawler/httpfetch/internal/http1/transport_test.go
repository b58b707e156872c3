package http1_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/http1"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// A server answers the requests of each connection, in turn, with the bytes that respond returns.
type server struct {
	net.Listener
	respond func(r *http.Request) string // a response that ends with "close" ends the connection
	opened  atomic.Int32
	closed  chan struct{} // receives for each connection that the other side has closed
}

func newServer(t *testing.T, respond func(r *http.Request) string) *server {
	t.Helper()
	s := &server{Listener: testlisten.Listen(t, "127.0.0.1:0"), respond: respond, closed: make(chan struct{}, 100)}
	go testlisten.Serve(s.Listener, func(c net.Conn) {
		s.opened.Add(1)
		s.serve(c)
	})
	return s
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			s.closed <- struct{}{}
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		text, last := strings.CutSuffix(s.respond(req), "close")
		if _, err := io.WriteString(c, text); err != nil || last {
			return
		}
	}
}

// newTransport returns a Transport whose connections lead to s.
func newTransport(s *server) *http1.Transport {
	return &http1.Transport{
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Addr().String())
		},
		IsUsable:       func(net.Conn) bool { return true },
		MaxHeaderBytes: 1 << 10,
	}
}

// roundTrip sends a request with ctx through t and returns the response with its body.
func roundTrip(ctx context.Context, t http.RoundTripper, method, url string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, "", err
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(res.Body)
	return res, string(body), errors.Join(err, res.Body.Close())
}

// TestResponses: each kind of response is read, and its connection carries the next request if nothing
// speaks against it.
func TestResponses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method, response string
		status                 int
		body                   string
		err                    string
		isReused               bool
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", "", true},
		{"no body", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", 304, "", "", true},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", 200, "", "", true},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"1\r\no\r\n1\r\nk\r\n0\r\nX-T: 1\r\n\r\n", 200, "ok", "", true},
		{"interim responses", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" +
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", "", true},
		{"until the end", "GET", "HTTP/1.1 200 OK\r\n\r\nokclose", 200, "ok", "", false},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", "", false},
		{"Connection: close", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok",
			"", false},
		{"more than its length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", 200, "ok", "", false},
		{"another protocol", "GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
			101, "", "", false},
		{"less than its length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nokclose", 0, "", "unexpected EOF",
			false},
		{"no response", "GET", "close", 0, "", "EOF", false},
		{"no HTTP", "GET", "SSH-2.0-OpenSSH\r\n\r\n", 0, "", "malformed", false},
		{"a malformed header", "GET", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 0, "", "malformed", false},
		{"a malformed header, and the end", "GET", "HTTP/1.1 200 OK\r\nX: \x00\r\nclose", 0, "", "malformed", false},
		{"half a header", "GET", "HTTP/1.1 200 OK\r\nclose", 0, "", "unexpected EOF", false},
		{"a long header", "GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<10) + "\r\n\r\n", 0, "", "too long",
			false},
		{"many interim responses", "GET", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100), 0, "", "too long",
			false},
	} {
		s := newServer(t, func(*http.Request) string { return tt.response })
		transport := newTransport(s)
		for range 2 {
			res, body, err := roundTrip(t.Context(), transport, tt.method, "http://site.test/")
			switch {
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.err)
			case tt.err == "" && (err != nil || res.StatusCode != tt.status || body != tt.body):
				t.Errorf("%s: %v, %q, %v; want %d, %q", tt.name, res, body, err, tt.status, tt.body)
			}
			var malformed *http1.MalformedResponseError
			if errors.As(err, &malformed) != (tt.err == "malformed") {
				t.Errorf("%s: error %v of type %T", tt.name, err, err)
			}
		}
		if isReused := s.opened.Load() == 1; isReused != tt.isReused {
			t.Errorf("%s: %d connections for two requests", tt.name, s.opened.Load())
		}
	}
}

// An endingConn returns io.EOF with the data of each read, as a tls.Conn does if close_notify came with the data.
type endingConn struct{ net.Conn }

func (c endingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, cmp.Or(err, io.EOF)
}

// TestEndWithResponse: a connection whose end arrives with a whole response is closed at once.
func TestEndWithResponse(t *testing.T) {
	t.Parallel()
	for _, response := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 204 No Content\r\n\r\n",
	} {
		s := newServer(t, func(*http.Request) string { return response })
		transport := newTransport(s)
		dial := transport.Dial
		transport.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			return endingConn{c}, err
		}
		for range 2 {
			if _, _, err := roundTrip(t.Context(), transport, "GET", "http://site.test/"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.closed:
			case <-time.After(time.Minute):
				t.Fatalf("%q: the connection is kept", response)
			}
		}
	}
}

// TestUnreadBody: a connection whose body is not read to its end is closed. A read after Close fails.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(*http.Request) string { return "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789" })
	transport := newTransport(s)
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://site.test/", nil)
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if n, err := res.Body.Read(make([]byte, 5)); n != 0 || err == nil {
		t.Errorf("read %d bytes after Close, %v", n, err)
	}
	<-s.closed
}

// A failingConn fails to write.
type failingConn struct {
	net.Conn
	err error
}

func (c failingConn) Write([]byte) (int, error) { return 0, c.err }

// TestFailedWrite: the error of a write is returned as it is, for short and long requests.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	transport := newTransport(s)
	errWrite := errors.New("not now")
	dial := transport.Dial
	transport.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return failingConn{c, errWrite}, err
	}
	for _, n := range []int{1, 1 << 20} {
		body := strings.NewReader(strings.Repeat("x", n))
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://site.test/", body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(req); !errors.Is(err, errWrite) {
			t.Errorf("%d bytes: the error is %v of type %T", n, err, err)
		}
		<-s.closed
	}
}

// TestEarlyResponse: a response that the server sends instead of reading the body of the request is returned,
// and its connection is closed. Without a response, the error is that of the write.
func TestEarlyResponse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 16<<20) // more than sockets hold
	for _, response := range []string{"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nlong", ""} {
		l := testlisten.Listen(t, "127.0.0.1:0")
		go testlisten.Serve(l, func(c net.Conn) {
			io.ReadFull(c, make([]byte, 10))
			io.WriteString(c, response)
			c.Close() // resets the connection: most of the request is unread
		})
		transport := newTransport(&server{Listener: l})
		for range 2 {
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://site.test/", strings.NewReader(long))
			if err != nil {
				t.Fatal(err)
			}
			res, err := transport.RoundTrip(req)
			if response == "" {
				var write *net.OpError
				if !errors.As(err, &write) || write.Op != "write" {
					t.Errorf("%v, want the error of a write", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(res.Body)
			if res.StatusCode != 413 || string(text) != "long" || err != nil {
				t.Errorf("%d, %q, %v; want 413 with its body", res.StatusCode, text, err)
			}
		}
	}
}

// TestContextEndsExchange: the end of the context ends a wait for the header, and for the rest of the body.
func TestContextEndsExchange(t *testing.T) {
	t.Parallel()
	for _, response := range []string{"HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"} {
		ctx, cancel := context.WithCancel(t.Context())
		s := newServer(t, func(*http.Request) string { return response })
		transport := newTransport(s)
		trace := &httptrace.ClientTrace{GotFirstResponseByte: func() { time.AfterFunc(time.Millisecond, cancel) }}
		_, _, err := roundTrip(httptrace.WithClientTrace(ctx, trace), transport, "GET", "http://site.test/")
		if err == nil {
			t.Errorf("%q: no error", response)
		}
		<-s.closed
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newServer(t, func(*http.Request) string { return "" })
	if _, _, err := roundTrip(ctx, newTransport(s), "GET", "http://site.test/"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}

// TestContextOfEarlierRequest: the end of a context after its response leaves the connection open.
func TestContextOfEarlierRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(*http.Request) string { return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" })
	transport := newTransport(s)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, _, err := roundTrip(ctx, transport, "GET", "http://site.test/"); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if n := s.opened.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	transport.CloseIdleConnections()
	<-s.closed
}

// TestIdleConnections: an idle connection that IsUsable or GotConn does not want is closed, and another one is
// taken, in place of a failure. Servers have connections of their own.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(*http.Request) string { return "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" })
	transport := newTransport(s)
	var isUsable, closes bool
	transport.IsUsable = func(net.Conn) bool { return isUsable }
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if info.Reused && closes {
			info.Conn.Close()
		}
	}}
	ctx := httptrace.WithClientTrace(t.Context(), trace)
	want := int32(0)
	for _, tt := range []struct {
		url              string
		isUsable, closes bool
		isReused         bool
	}{
		{"http://site.test/", true, false, false},
		{"http://site.test:80/other", true, false, true},
		{"http://site.test:81/", true, false, false},
		{"http://other.test/", true, false, false},
		{"http://site.test/", false, false, false},
		{"http://site.test/", true, true, false},
		{"http://site.test/", true, false, true},
	} {
		isUsable, closes = tt.isUsable, tt.closes
		if _, _, err := roundTrip(ctx, transport, "GET", tt.url); err != nil {
			t.Fatal(err)
		}
		if !tt.isReused {
			want++
		}
		if n := s.opened.Load(); n != want {
			t.Errorf("%+v: %d connections, want %d", tt, n, want)
		}
	}
}

// TestManyRequests: simultaneous requests each have a connection, and get their own responses.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(r *http.Request) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.URL.Path), r.URL.Path)
	})
	transport := newTransport(s)
	var requests sync.WaitGroup
	for i := range 8 {
		requests.Go(func() {
			for j := range 100 {
				path := fmt.Sprintf("/%d/%d", i, j)
				if _, body, err := roundTrip(t.Context(), transport, "GET", "http://site.test"+path); err != nil || body != path {
					t.Errorf("%s: %q, %v", path, body, err)
				}
			}
		})
	}
	requests.Wait()
	if n := s.opened.Load(); n > 8 {
		t.Errorf("%d connections for 8 requests at a time", n)
	}
}

// TestDisableKeepAlives: each request asks the server to close its connection.
func TestDisableKeepAlives(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(r *http.Request) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%5v", r.Close)
	})
	transport := newTransport(s)
	transport.DisableKeepAlives = true
	for range 2 {
		if _, body, err := roundTrip(t.Context(), transport, "GET", "http://site.test/"); body != " true" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		<-s.closed
	}
}

// TestInvalidURLs: nothing is dialled for a URL that does not lead to an HTTP server.
func TestInvalidURLs(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(*http.Request) string { return "" })
	for _, url := range []string{"gopher://site.test/", "http:///path", "http://:80/"} {
		if _, _, err := roundTrip(t.Context(), newTransport(s), "GET", url); err == nil {
			t.Errorf("%s: no error", url)
		}
	}
	if n := s.opened.Load(); n != 0 {
		t.Errorf("%d connections, want 0", n)
	}
}

// TestInvalidHeaders: nothing is dialled for a request with a header that could not be sent as it is.
func TestInvalidHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(*http.Request) string { return "HTTP/1.1 204 No Content\r\n\r\n" })
	for _, header := range []http.Header{
		{"X-A": {"a\r\nX-B: b"}}, {"X-A": {"a", "\x00"}}, {"X A": {"a"}}, {"": {"a"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://site.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		if _, err := newTransport(s).RoundTrip(req); err == nil {
			t.Errorf("%q: no error", header)
		}
	}
	if n := s.opened.Load(); n != 0 {
		t.Errorf("%d connections, want 0", n)
	}
}
