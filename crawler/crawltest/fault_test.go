package crawltest

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A clientResponse is an answer as a client receives it.
type clientResponse struct {
	status int
	body   string
	res    *http.Response
}

// get requests a page without following redirects, and reads its body to the end.
func get(ctx context.Context, rt http.RoundTripper, url string, header ...string) (clientResponse, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return clientResponse{}, err
	}
	req.Header.Set("User-Agent", "testbot/1.0 (+https://testbot.example/)")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		return clientResponse{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return clientResponse{res.StatusCode, string(body), res}, err
}

// faultCases says how each fault looks to a client, and in the log.
var faultCases = []struct {
	name    string
	fault   ResponseFault
	want    func(error) bool
	timeout bool // the answer never ends, so the client needs a timeout
	status  int  // in the log
	broken  bool // in the log
	partial bool // some of the body was sent
}{
	{"no fault", NoFault, nil, false, 200, false, true},
	{"hang", Hang, isError(context.DeadlineExceeded), true, 0, true, false},
	{"stall", StallBody, isError(context.DeadlineExceeded), true, 200, true, true},
	{"reset before the answer", Reset, isError(syscall.ECONNRESET), false, 0, true, false},
	{"reset in the body", ResetBody, isError(syscall.ECONNRESET), false, 200, true, true},
	{"shorter than Content-Length", ShortBody, isError(io.ErrUnexpectedEOF), false, 200, true, true},
	{"no last chunk", MissingLastChunk, isError(io.ErrUnexpectedEOF), false, 200, true, true},
	{"damaged gzip", BadGzip, isDamagedGzip, false, 200, true, true},
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isDamagedGzip(err error) bool {
	var corrupt flate.CorruptInputError
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt)
}

// webWithFault returns a web with one page that has a fault.
func webWithFault(f ResponseFault) *Web {
	a := Text(strings.Repeat("All is well. ", 1000))
	a.Fault = f
	return New(Site{Host: "a.example", Pages: map[string]PageFunc{"/page": StaticPage(a)}})
}

func TestFaultsInMemory(t *testing.T) {
	for _, tt := range faultCases {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := webWithFault(tt.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				got, err := get(ctx, w, "http://a.example/page")
				checkFault(t, tt.want, got, err)
				if waited := time.Since(start) == time.Minute; waited != tt.timeout {
					t.Errorf("client gave up: %v, want %v", waited, tt.timeout)
				}
				checkLogged(t, w.Log(), tt.status, tt.broken, tt.partial)
				if end := w.Log()[0].End; !end.Equal(time.Now()) {
					t.Errorf("logged end %v, the client's is %v", end, time.Now())
				}
			})
		})
	}
}

func TestFaultsOverSockets(t *testing.T) {
	for _, tt := range faultCases {
		t.Run(tt.name, func(t *testing.T) {
			w := webWithFault(tt.fault)
			s, transport := startServer(t, w)
			timeout := 10 * time.Second
			if tt.timeout {
				timeout = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			got, err := get(ctx, transport, "http://a.example/page")
			checkFault(t, tt.want, got, err)
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			checkLogged(t, w.Log(), tt.status, tt.broken, tt.partial)
		})
	}
}

// startServer serves a web on a socket until the end of the test.
func startServer(t *testing.T, w *Web) (*Server, *http.Transport) {
	t.Helper()
	s, err := w.Start("")
	if err != nil {
		t.Fatal(err)
	}
	transport := s.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return s, transport
}

func checkFault(t *testing.T, want func(error) bool, got clientResponse, err error) {
	t.Helper()
	switch {
	case want == nil && (err != nil || len(got.body) != 13000):
		t.Errorf("got %d bytes and error %v, want 13000 bytes", len(got.body), err)
	case want != nil && (err == nil || !want(err)):
		t.Errorf("got %d bytes and error %v, want another error", len(got.body), err)
	}
}

func checkLogged(t *testing.T, log []Exchange, status int, broken, partial bool) {
	t.Helper()
	if len(log) != 1 {
		t.Fatalf("%d requests logged, want 1: %v", len(log), log)
	}
	x := log[0]
	if x.Status != status || x.Incomplete != broken || (x.BodyBytes > 0) != partial || x.End.IsZero() {
		t.Errorf("logged %+v, want status %d, broken %v, body begun %v, and an end", x, status, broken, partial)
	}
}

// The server records the end of an answer no later than the client sees it, so that the judge never
// reports a client that waits exactly as long as required.
func TestNoAnswerEndsBeforeItsLoggedEnd(t *testing.T) {
	for _, size := range []int{0, 1, 1000, maxPieceBytes, maxPieceBytes + 1, 1 << 20} {
		w := New(Site{Host: "a.example",
			Pages: map[string]PageFunc{"/page": StaticPage(Text(strings.Repeat("x", size)))}})
		_, transport := startServer(t, w)
		for range 5 {
			got, err := get(t.Context(), transport, "http://a.example/page")
			end := time.Now()
			if err != nil || len(got.body) != size {
				t.Fatalf("size %d: got %d bytes, error %v", size, len(got.body), err)
			}
			log := w.Log()
			if last := log[len(log)-1]; last.End.IsZero() || last.End.After(end) || last.Incomplete {
				t.Errorf("size %d: logged %+v, the client's end is %v", size, last, end)
			}
		}
	}
}

// Close does not wait for clients that wait for the server.
func TestCloseEndsHangingAnswers(t *testing.T) {
	requested := make(chan struct{})
	w := New(Site{Host: "a.example", Fallback: func(PageRequest) Response {
		close(requested)
		return Response{Fault: Hang}
	}})
	s, transport := startServer(t, w)
	failed := make(chan error, 1)
	go func() {
		_, err := get(context.Background(), transport, "http://a.example/page")
		failed <- err
	}()
	<-requested
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the client got an answer")
	}
	if x := w.Log()[0]; !x.Incomplete || x.End.IsZero() {
		t.Errorf("logged %+v, want it broken off and ended", x)
	}
}
