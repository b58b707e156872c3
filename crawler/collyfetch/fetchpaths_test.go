package collyfetch_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// A requestRecorder is a server that records each request except for bytes that always differ, and
// answers a page with the bytes given for its path.
type requestRecorder struct {
	answers  map[string]string
	mu       sync.Mutex // guards requests
	requests []string
}

// recorded returns the requests so far. A response that the crawl did not wait for may be under way.
func (s *requestRecorder) recorded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *requestRecorder) serveConn(c net.Conn) {
	defer c.Close()
	var raw bytes.Buffer
	req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &raw)))
	if err != nil { // as for a path that net/url refuses
		words := strings.Fields(raw.String())
		if len(words) < 2 {
			return
		}
		req = &http.Request{URL: &url.URL{Path: words[1]}, Body: http.NoBody}
	}
	body, _ := io.ReadAll(req.Body)
	lines := strings.Split(strings.TrimSuffix(raw.String(), string(body)), "\r\n")
	slices.Sort(lines[1:]) // net/http sorts only some headers
	for i, line := range lines {
		if name, _, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Signature") && name != "Signature-Agent" {
			lines[i] = name + ": …"
		}
	}
	answer, ok := s.answers[req.URL.Path]
	if req.URL.Path == "/robots.txt" || !ok {
		io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, strings.Join(lines, "\n")+"\n"+string(body))
	s.mu.Unlock()
	io.WriteString(c, answer)
	if strings.HasSuffix(req.URL.Path, "/slow") {
		_, _ = c.Read(make([]byte, 1))
	}
}

// A pageOutcome is the outcome of one page's visit.
type pageOutcome struct {
	URL, Err, Body string
	Status         int
	Header         http.Header
}

// TestCallbackAndPlainFetchAgree: a page is requested in the same way, and has the same outcome,
// with and without callbacks.
func TestCallbackAndPlainFetchAgree(t *testing.T) {
	signer, _ := newSignerAndChecker(t)
	page := func(header, body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: "+
			"%d\r\n%s\r\n%s", len(body), header, body)
	}
	moved := func(to string) string {
		return "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: " + to + "\r\n\r\n"
	}
	ask := func(method, body string) *storage.NonGETRequest {
		return &storage.NonGETRequest{Method: method, Body: []byte(body)}
	}
	for _, tt := range []struct {
		name    string
		url     string // http://a.test/x, if it is not said
		request *storage.NonGETRequest
		answers map[string]string
		cfg     httpfetch.Config
		visits  int
		proxied bool
	}{
		{name: "a page", answers: map[string]string{"/x": page("", "x")}},
		{name: "of another port", url: "http://a.test:8080/x?b=c%20d&é",
			answers: map[string]string{"/x": page("", "x")}},
		{name: "an odd path", url: "http://a.test/x/%7e|^'\"a%2Fb",
			answers: map[string]string{"/x/~|^'\"a/b": page("", "x")}},
		{name: "headers", cfg: httpfetch.Config{Headers: http.Header{"Accept": {"text/html"},
			"Accept-Language": {"en", "de"}, "X-A": {""}}, From: "bot@example.com"},
			answers: map[string]string{"/x": page("", "x")}},
		{name: "headers in small letters", cfg: httpfetch.Config{Headers: http.Header{"accept-language": {"en"}}},
			answers: map[string]string{"/x": page("", "x")}},
		{name: "signed", cfg: httpfetch.Config{Signer: signer}, answers: map[string]string{"/x": page("", "x")}},
		{name: "cookies", visits: 2, answers: map[string]string{"/x": "HTTP/1.1 302 Found\r\nConnection: " +
			"close\r\nContent-Length: 0\r\nSet-Cookie: a=b\r\nLocation: /y\r\n\r\n", "/y": page("", "y")}},
		{name: "POST", request: ask("POST", "a=b"), answers: map[string]string{"/x": page("", "x")}},
		{name: "POST of nothing", request: ask("POST", ""), answers: map[string]string{"/x": page("", "x")}},
		{name: "PUT", request: ask("PUT", "a=b"), answers: map[string]string{"/x": page("", "x")}},
		{name: "DELETE", request: ask("DELETE", ""), answers: map[string]string{"/x": page("", "x")}},
		{name: "HEAD", request: ask("HEAD", ""), answers: map[string]string{"/x": page("", "")}},
		{name: "POST led on", visits: 2, request: ask("POST", "a=b"),
			answers: map[string]string{"/x": "HTTP/1.1 307 T\r\nConnection: close\r\nContent-Length: 0\r\nLocation: " +
				"/y\r\n\r\n", "/y": page("", "y")}},
		{name: "POST led to a page", visits: 2, request: ask("POST", "a=b"),
			answers: map[string]string{"/x": moved("/y"), "/y": page("", "y")}},
		{name: "led on", visits: 2, answers: map[string]string{"/x": moved("http://a.test/y"), "/y": page("", "y")}},
		{name: "led nowhere", answers: map[string]string{"/x": moved("http://[")}},
		{name: "with neither", answers: map[string]string{"/x": "HTTP/1.1 302 Found\r\nConnection: " +
			"close\r\nContent-Length: 0\r\n\r\n"}},
		{name: "an odd status", answers: map[string]string{"/x": "HTTP/1.1 299 Odd\r\nConnection: " +
			"close\r\nContent-Length: 1\r\n\r\nx"}},
		{name: "an error", answers: map[string]string{"/x": "HTTP/1.1 404 Not Found\r\nConnection: " +
			"close\r\nContent-Length: 1\r\n\r\nx"}},
		{name: "cut", answers: map[string]string{"/x": "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
			"9\r\n\r\nx"}},
		{name: "no HTTP", answers: map[string]string{"/x": "hello\r\n\r\n"}},
		{name: "nothing", answers: map[string]string{"/x": ""}},
		{name: "a long header", cfg: httpfetch.Config{MaxHeaderBytes: 4 << 10},
			answers: map[string]string{"/x": page("X: "+strings.Repeat("x", 100<<10)+"\r\n", "x")}},
		{name: "late", cfg: httpfetch.Config{Timeout: time.Second, FirstByteTimeout: 200 * time.Millisecond},
			answers: map[string]string{"/slow": ""}, url: "http://a.test/slow"},
		{name: "slow", cfg: httpfetch.Config{Timeout: 300 * time.Millisecond},
			answers: map[string]string{"/slow": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx"},
			url:     "http://a.test/slow"},
		{name: "no gzip", answers: map[string]string{"/x": page("Content-Encoding: gzip\r\n", "x")}},
		{name: "stray percent signs", url: "http://a.test/x%zz%%41%4", answers: map[string]string{
			"/x%zz%%41%4": page("", "x")}},
		{name: "a proxy", proxied: true, answers: map[string]string{"/x": page("", "x")}},
		{name: "a proxy that wants a password", proxied: true,
			answers: map[string]string{"/x": "HTTP/1.1 407 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var outcomes [2][]pageOutcome
			var requests [2][]string
			for i := range outcomes {
				s := &requestRecorder{answers: tt.answers}
				l := testlisten.Listen(t, "127.0.0.1:0")
				go testlisten.Serve(l, s.serveConn)
				cfg := tt.cfg
				if tt.proxied {
					cfg.Proxy, cfg.AllowPrivate = "http://"+l.Addr().String(), true
				} else {
					cfg.ConnectToRules, cfg.AllowPrivate = []string{"::" + l.Addr().String()}, true
				}
				if tt.name == "cookies" {
					cfg.Cookies = httpfetch.NewCookies(memory.New(memory.Config{}))
				}
				outcomes[i] = crawlPage(t, cfg, tt.url, tt.request, i == 1)
				requests[i] = s.recorded()
			}
			if diff := cmp.Diff(outcomes[0], outcomes[1]); diff != "" {
				t.Errorf("without callbacks and with:\n%s", diff)
			}
			if diff := cmp.Diff(requests[0], requests[1]); diff != "" {
				t.Errorf("the server heard without callbacks and with:\n%s", diff)
			}
			if want := max(tt.visits, 1); len(outcomes[0]) != want {
				t.Errorf("%d visits, want %d: %+v", len(outcomes[0]), want, outcomes[0])
			}
		})
	}
}

// crawlPage crawls a page, through colly and callbacks or with an httpfetch.Fetcher alone.
func crawlPage(t *testing.T, cfg httpfetch.Config, address string, request *storage.NonGETRequest,
	callbacks bool) (outcomes []pageOutcome) {
	t.Helper()
	crawl, _ := newCrawl(t, cfg)
	if !callbacks {
		cfg.UserAgent = userAgent
		fetcher, err := httpfetch.New(cfg)
		must(t, err)
		crawl.Fetcher, crawl.Handler = fetcher, crawl.LinksToFollow
	}
	crawl.Settings.MaxAttempts, crawl.Settings.Workers = 1, 1
	crawl.Hooks.Visited = func(v *crawler.Visit) {
		if !v.Kind.IsPage() {
			return
		}
		p := pageOutcome{URL: v.URL().String(), Status: v.Status()}
		if v.Err != nil {
			p.Err = v.Err.Error()
		}
		if v.Response != nil {
			p.Body, p.Header = string(v.Response.Body), v.Response.Header
		}
		outcomes = append(outcomes, p)
	}
	if address == "" {
		address = "http://a.test/x"
	}
	u, err := decorum.ParseURL(address)
	must(t, err)
	_, err = crawl.Frontier.Discover(t.Context(), storage.Entry{URL: u, Source: storage.SourceSeed, Request: request})
	must(t, err)
	if err := crawl.Run(t.Context()); err != nil {
		t.Logf("the crawl: %v", err)
	}
	return outcomes
}
