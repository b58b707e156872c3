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

func TestIntake(t *testing.T) {
	const a, b = "https://example.com/a", "https://example.com/b"
	object := `{"url": "https://example.com/b", "depth": 2}`
	long := "https://example.com/" + strings.Repeat("x", maxLineBytes)
	for _, tt := range []struct {
		name, of, body string
		want           []string
		status, bad    int
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
		{"an element that is too long", "application/json", `["` + a + `", "` + long + long + `"]`, []string{a}, 413, 0},
		{"a document", "application/pdf", "%PDF", nil, 415, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &script{}
			c := call{method: "POST", path: "/api/v1/projects/books/urls", body: tt.body}.by(operateToken)
			if tt.of != "" {
				c = c.with("Content-Type", tt.of)
			}
			w := c.to(newServer(t, d))
			if w.Code != tt.status || !slices.Equal(d.urls, tt.want) {
				t.Errorf("%d, taken %q, want %d, %q: %s", w.Code, d.urls, tt.status, tt.want, w.Body)
			}
			var in Intake
			switch tt.status {
			case 200:
				json.Unmarshal(w.Body.Bytes(), &in)
			case 400, 413:
				if p := wantProblem(t, w, tt.status); p.Taken != nil {
					in = *p.Taken
				}
			}
			if in.Added != len(tt.want) || in.NoURLs != tt.bad {
				t.Errorf("the answer says %+v", in)
			}
		})
	}
}

// listen serves d on loopback until the test is over or stop is called.
func listen(t *testing.T, d *script, change ...func(*Config)) (base string, stop func() error) {
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

func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+operateToken)
	r.Header.Set("Content-Type", "text/plain")
	return r
}

// TestIntakePressesBack: while the daemon takes nothing, no more of the body is read
// than fits between the two.
func TestIntakePressesBack(t *testing.T) {
	const lines, line = 400_000, "https://example.com/a-page-that-has-a-name-of-some-length\n"
	chunk := []byte(strings.Repeat(line, 1000))
	release := make(chan struct{})
	taken := 0
	d := &script{offer: func(string) error { <-release; taken++; return nil }}
	base, _ := listen(t, d)
	in, out := io.Pipe()
	sent := make(chan int, 1)
	full := make(chan struct{}) // the client can send no more
	go func() {
		w := &stuck{w: out, stalled: full}
		for range lines / 1000 {
			if _, err := w.Write(chunk); err != nil {
				break
			}
		}
		out.Close()
		sent <- w.n
	}()
	go func() { <-full; close(release) }()
	res, err := http.DefaultClient.Do(request(t, "POST", base+"/api/v1/projects/books/urls", in))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var got Intake
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Added != lines || taken != lines {
		t.Errorf("%d taken, the answer says %+v, %v", taken, got, err)
	}
	if n, all := <-sent, lines*len(line); n >= all {
		t.Errorf("%d of %d bytes were read while nothing was taken", n, all)
	}
}

// A stuck writer notices when a write is not taken for long, and how much was
// before.
type stuck struct {
	w       io.Writer
	stalled chan struct{}
	n       int
	was     bool
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.was {
		return s.w.Write(b)
	}
	timer := time.AfterFunc(300*time.Millisecond, func() { close(s.stalled) })
	n, err := s.w.Write(b)
	if s.was = !timer.Stop(); !s.was {
		s.n += n
	}
	return n, err
}

// TestClientGoes: what was read before a client went away stays taken, and the
// audit says that it went.
func TestClientGoes(t *testing.T) {
	took := make(chan string, 10)
	d := &script{offer: func(u string) error { took <- u; return nil }}
	base, _ := listen(t, d)
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST /api/v1/projects/books/urls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nhttps://example.com/1\nhttps://exam", operateToken)
	if u := <-took; u != "https://example.com/1" {
		t.Errorf("taken: %s", u)
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
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != 400 || p.Taken == nil || p.Taken.Added != 1 {
		t.Errorf("%d %+v, %v", res.StatusCode, p, err)
	}
	if len(took) > 0 {
		t.Errorf("half a line was taken: %s", <-took)
	}
}

// TestStop: when the server stops, streams end, what was offered and taken is told,
// and calls in hand are answered.
func TestStop(t *testing.T) {
	took := make(chan string)
	d := &script{offer: func(u string) error { took <- u; return nil }, events: []Event{{Type: "state"}}}
	base, stop := listen(t, d)
	events, err := http.DefaultClient.Do(request(t, "GET", base+"/api/v1/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	in, out := io.Pipe()
	answered := make(chan *http.Response, 1)
	go func() {
		res, err := http.DefaultClient.Do(request(t, "POST", base+"/api/v1/projects/books/urls", in))
		if err != nil {
			t.Error(err)
		}
		answered <- res
	}()
	fmt.Fprintln(out, "https://example.com/1")
	<-took
	told := bufio.NewReader(events.Body)
	for line := ""; line != "event: state\n"; {
		if line, err = told.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if _, err := io.ReadAll(told); err != nil {
		t.Errorf("the events ended with %v", err)
	}
	go func() { // the read that was waiting when the server stopped
		for {
			if _, err := fmt.Fprintln(out, "https://example.com/2"); err != nil {
				return
			}
			select {
			case <-took:
			case <-t.Context().Done():
				return
			}
		}
	}()
	res := <-answered
	defer res.Body.Close()
	var p Problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != 503 || p.Taken == nil || p.Taken.Added < 1 {
		t.Errorf("%d %+v, %v", res.StatusCode, p, err)
	}
	out.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A tape is a ResponseWriter that can be looked into while it is written to.
type tape struct {
	*httptest.ResponseRecorder
	flushed func(string)
}

func (t *tape) Flush() { t.flushed(t.Body.String()); t.Body.Reset() }

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Date(2026, 11, 22, 3, 4, 5, 0, time.UTC)
		s := newServer(t, &script{events: []Event{{At: at, Type: "visit", URL: "https://example.com/"}, {At: at, Type: "state", Project: "books"}}})
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequest("GET", "http://localhost/api/v1/events", nil).WithContext(ctx)
		r.Header.Set("Authorization", "Bearer "+readToken)
		r.Header.Set("Last-Event-ID", "17")
		var said []string
		w := &tape{httptest.NewRecorder(), func(text string) { said = append(said, text) }}
		over := make(chan struct{})
		go func() { defer close(over); s.ServeHTTP(w, r) }()
		time.Sleep(2*heartbeat + time.Second)
		cancel()
		<-over
		want := []string{
			"retry: 3000\n\n",
			"id: 1\nevent: visit\ndata: {\"at\":\"2026-11-22T03:04:05Z\",\"type\":\"visit\",\"url\":\"https://example.com/\"}\n\n",
			"id: 2\nevent: state\ndata: {\"at\":\"2026-11-22T03:04:05Z\",\"type\":\"state\",\"project\":\"books\"}\n\n",
			": all is well\n\n", ": all is well\n\n",
		}
		if !slices.Equal(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
		if w.Header().Get("Content-Type") != eventStream {
			t.Errorf("the header is %v", w.Header())
		}
	})
}

// Callers who may only read cannot take all streams of events.
func TestStreamsForOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &script{}, func(c *Config) { c.Streams = 4 })
		get := call{method: "GET", path: "/api/v1/events"}
		over := make(chan int, 4)
		begin := func(token string) {
			go func() { over <- get.by(token).to(s).Code }()
			synctest.Wait()
		}
		for range 3 {
			begin(readToken)
		}
		wantProblem(t, get.by(readToken).to(s), http.StatusServiceUnavailable)
		begin(operateToken)
		wantProblem(t, get.by(operateToken).to(s), http.StatusServiceUnavailable)
		s.endStreams()
		for range 4 {
			if code := <-over; code != http.StatusOK {
				t.Errorf("a stream ended with %d", code)
			}
		}
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &script{}, func(c *Config) { c.Streams = 2 })
		get := call{method: "GET", path: "/api/v1/events"}.by(readToken)
		over := make(chan int, 2)
		for range 2 {
			go func() { over <- get.to(s).Code }()
		}
		synctest.Wait()
		wantProblem(t, get.to(s), http.StatusServiceUnavailable)
		s.endStreams()
		if a, b := <-over, <-over; a != 200 || b != 200 {
			t.Errorf("the streams ended with %d and %d", a, b)
		}
		s.d = &script{fail: errors.New("no")}
		if w := get.to(s); w.Code != http.StatusInternalServerError {
			t.Errorf("after they have ended: %d", w.Code)
		}
		if n := s.streams.Load(); n != 0 {
			t.Errorf("%d streams are counted", n)
		}
	})
}
