package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAddURLs(t *testing.T) {
	const a, b = "https://example.com/a", "https://example.com/b"
	object := `{"url": "https://example.com/b", "depth": 2}`
	long := "https://example.com/" + strings.Repeat("x", maxLineBytes)
	for _, tt := range []struct {
		name, contentType, body string
		want                    []string
		status, invalid         int
	}{
		{"lines", "text/plain; charset=utf-8", a + "\r\n\n  " + b + "  \n", []string{a, b}, 200, 0},
		{"no end", "text/plain", a + "\n" + b, []string{a, b}, 200, 0},
		{"nothing", "text/plain", "", nil, 200, 0},
		{"no type", "", a + "\n", []string{a}, 200, 0},
		{"JSON Lines", "application/x-ndjson", `"` + a + `"` + "\n" + object + "\n", []string{a, object}, 200, 0},
		{"an escape", "application/jsonl", `"https:\/\/example.com\/a"` + "\n", []string{a}, 200, 0},
		{"half a line in quotes", "application/x-ndjson", `"https://` + "\n" + a, []string{`"https://`, a}, 200, 0},
		{"a line that is too long", "text/plain", a + "\n" + long + "\n" + b + "\n", []string{a, b}, 200, 1},
		{"the last is too long", "text/plain", a + "\n" + long, []string{a}, 200, 1},
		{"an array", "application/json", ` ["` + a + `",` + "\n" + object + ` ] `, []string{a, object}, 200, 0},
		{"an empty array", "application/json", `[]`, nil, 200, 0},
		{"no array", "application/json", `{"url": "` + a + `"}`, nil, 400, 0},
		{"half an array", "application/json", `["` + a + `", `, []string{a}, 400, 0},
		{"an element that is too long", "application/json", `["` + a + `", "` + long + long +
			`"]`, []string{a}, 413, 0},
		{"a document", "application/pdf", "%PDF", nil, 415, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &fakeDaemon{}
			c := testRequest{method: "POST", path: "/api/v1/projects/books/urls", body: tt.body}.withToken(operateToken)
			if tt.contentType != "" {
				c = c.withHeader("Content-Type", tt.contentType)
			}
			w := c.sendTo(newServer(t, d))
			if w.Code != tt.status || !slices.Equal(d.urls, tt.want) {
				t.Errorf("%d, added %q, want %d, %q: %s", w.Code, d.urls, tt.status, tt.want, w.Body)
			}
			var in AddURLsResult
			switch tt.status {
			case 200:
				json.Unmarshal(w.Body.Bytes(), &in)
			case 400, 413:
				if p := checkProblem(t, w, tt.status); p.PartialResult != nil {
					in = *p.PartialResult
				}
			}
			if in.Added != len(tt.want) || in.InvalidLines != tt.invalid {
				t.Errorf("the answer is %+v", in)
			}
		})
	}
}

// startServer serves d on loopback until the test ends or stop is called.
func startServer(t *testing.T, d *fakeDaemon, change ...func(*ServerConfig)) (base string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, d, change...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	stop = func() error { cancel(); err := <-ended; ended <- nil; return err }
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String(), stop
}

func newTestRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+operateToken)
	r.Header.Set("Content-Type", "text/plain")
	return r
}

// While the daemon adds no URL, the server reads no more of the body than the buffers between
// client and daemon hold.
func TestAddURLsBackpressure(t *testing.T) {
	const lines, line = 400_000, "https://example.com/a-page-that-has-a-name-of-some-length\n"
	chunk := []byte(strings.Repeat(line, 1000))
	release := make(chan struct{})
	added := 0
	d := &fakeDaemon{onURL: func(string) error { <-release; added++; return nil }}
	base, _ := startServer(t, d)
	in, out := io.Pipe()
	sent := make(chan int, 1)
	full := make(chan struct{}) // closed when the client cannot send more
	go func() {
		w := &stallWriter{w: out, stalled: full}
		for range lines / 1000 {
			if _, err := w.Write(chunk); err != nil {
				break
			}
		}
		out.Close()
		sent <- w.n
	}()
	go func() { <-full; close(release) }()
	res, err := http.DefaultClient.Do(newTestRequest(t, "POST", base+"/api/v1/projects/books/urls", in))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got AddURLsResult
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Added != lines || added != lines {
		t.Errorf("%d added, the answer is %+v, %v", added, got, err)
	}
	if n, all := <-sent, lines*len(line); n >= all {
		t.Errorf("%d of %d bytes were read while no URL was added", n, all)
	}
}

// A stallWriter detects that a write blocks for long, and counts the bytes written before.
type stallWriter struct {
	w          io.Writer
	stalled    chan struct{}
	n          int
	hasStalled bool
}

func (s *stallWriter) Write(b []byte) (int, error) {
	if s.hasStalled {
		return s.w.Write(b)
	}
	timer := time.AfterFunc(300*time.Millisecond, func() { close(s.stalled) })
	n, err := s.w.Write(b)
	if s.hasStalled = !timer.Stop(); !s.hasStalled {
		s.n += n
	}
	return n, err
}

// URLs that were read before a client disconnects stay queued, and the audit records that it
// disconnected.
func TestClientDisconnects(t *testing.T) {
	added := make(chan string, 10)
	d := &fakeDaemon{onURL: func(u string) error { added <- u; return nil }}
	base, _ := startServer(t, d)
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /api/v1/projects/books/urls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+
		"%s\r\nContent-Length: 1000\r\n\r\nhttps://example.com/1\nhttps://exam", operateToken)
	if u := <-added; u != "https://example.com/1" {
		t.Errorf("added: %s", u)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var p Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != 400 || p.PartialResult == nil ||
		p.PartialResult.Added != 1 {
		t.Errorf("%d %+v, %v", res.StatusCode, p, err)
	}
	if len(added) > 0 {
		t.Errorf("half a line was added: %s", <-added)
	}
}

// When the server stops, streams end, a call that adds URLs reports what was added, and calls in
// progress are answered.
func TestStop(t *testing.T) {
	added := make(chan string)
	d := &fakeDaemon{onURL: func(u string) error { added <- u; return nil }, events: []Event{{Type: "state"}}}
	base, stop := startServer(t, d)
	events, err := http.DefaultClient.Do(newTestRequest(t, "GET", base+"/api/v1/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	in, out := io.Pipe()
	answered := make(chan *http.Response, 1)
	go func() {
		res, err := http.DefaultClient.Do(newTestRequest(t, "POST", base+"/api/v1/projects/books/urls", in))
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	fmt.Fprintln(out, "https://example.com/1")
	<-added
	stream := bufio.NewReader(events.Body)
	for line := ""; line != "event: state\n"; {
		if line, err = stream.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the events ended with %v", err)
	}
	go func() { // ends the read that was waiting when the server stopped
		for {
			if _, err := fmt.Fprintln(out, "https://example.com/2"); err != nil {
				return
			}
			select {
			case <-added:
			case <-t.Context().Done():
				return
			}
		}
	}()
	res := <-answered
	defer res.Body.Close()
	var p Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != 503 || p.PartialResult == nil ||
		p.PartialResult.Added < 1 {
		t.Errorf("%d %+v, %v", res.StatusCode, p, err)
	}
	out.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A flushRecorder is a ResponseWriter whose content a test can read while a handler writes to it.
type flushRecorder struct {
	*httptest.ResponseRecorder
	onFlush func(string)
}

func (t *flushRecorder) Flush() { t.onFlush(t.Body.String()); t.Body.Reset() }

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
		s := newServer(t, &fakeDaemon{events: []Event{{At: at, Type: "visit", URL: "https://example.com/"},
			{At: at, Type: "state", Project: "books"}}})
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequest("GET", "http://localhost/api/v1/events", nil).WithContext(ctx)
		r.Header.Set("Authorization", "Bearer "+readToken)
		r.Header.Set("Last-Event-ID", "17")
		var flushed []string
		w := &flushRecorder{httptest.NewRecorder(), func(text string) { flushed = append(flushed, text) }}
		done := make(chan struct{})
		go func() { defer close(done); s.ServeHTTP(w, r) }()
		time.Sleep(2*keepAliveInterval + time.Second)
		cancel()
		<-done
		want := []string{
			"retry: 3000\n\n",
			"id: 1\nevent: visit\ndata: " +
				"{\"at\":\"2026-11-22T03:04:05Z\",\"type\":\"visit\",\"url\":\"https://example.com/\"}\n\n",
			"id: 2\nevent: state\ndata: {\"at\":\"2026-11-22T03:04:05Z\",\"type\":\"state\",\"project\":\"books\"}\n\n",
			": all is well\n\n", ": all is well\n\n",
		}
		if !slices.Equal(flushed, want) {
			t.Errorf("flushed %q, want %q", flushed, want)
		}
		if w.Header().Get("Content-Type") != eventStreamType {
			t.Errorf("the header is %v", w.Header())
		}
	})
}

// Callers with the role read cannot use up all event streams.
func TestStreamsForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &fakeDaemon{}, func(c *ServerConfig) { c.MaxEventStreams = 4 })
		get := testRequest{method: "GET", path: "/api/v1/events"}
		statuses := make(chan int, 4)
		begin := func(token string) {
			go func() { statuses <- get.withToken(token).sendTo(s).Code }()
			synctest.Wait()
		}
		for range 3 {
			begin(readToken)
		}
		checkProblem(t, get.withToken(readToken).sendTo(s), http.StatusServiceUnavailable)
		begin(operateToken)
		checkProblem(t, get.withToken(operateToken).sendTo(s), http.StatusServiceUnavailable)
		s.eventStreams.stopAll()
		for range 4 {
			if code := <-statuses; code != http.StatusOK {
				t.Errorf("a stream ended with %d", code)
			}
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &fakeDaemon{}, func(c *ServerConfig) { c.MaxEventStreams = 2 })
		get := testRequest{method: "GET", path: "/api/v1/events"}.withToken(readToken)
		statuses := make(chan int, 2)
		for range 2 {
			go func() { statuses <- get.sendTo(s).Code }()
		}
		synctest.Wait()
		checkProblem(t, get.sendTo(s), http.StatusServiceUnavailable)
		s.eventStreams.stopAll()
		if a, b := <-statuses, <-statuses; a != 200 || b != 200 {
			t.Errorf("the streams ended with %d and %d", a, b)
		}
		s.daemon = &fakeDaemon{err: errors.New("no")}
		if w := get.sendTo(s); w.Code != http.StatusInternalServerError {
			t.Errorf("after they have ended: %d", w.Code)
		}
		if n := s.eventStreams.openCount.Load(); n != 0 {
			t.Errorf("%d streams are counted", n)
		}
	})
}

// Callers with the role read get at most three quarters of the event streams, and a stream that
// ends frees its place.
func TestEventStreamsAreReserved(t *testing.T) {
	s := &eventStreams{max: 4}
	for range 3 {
		if err := s.begin(RoleRead); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.begin(RoleRead); err == nil {
		t.Error("the role read got a stream that is reserved for operate")
	}
	if err := s.begin(RoleOperate); err != nil {
		t.Error(err)
	}
	if err := s.begin(RoleOperate); err == nil {
		t.Error("there are five streams of four")
	}
	s.end()
	if err := s.begin(RoleOperate); err != nil {
		t.Error(err)
	}
}
