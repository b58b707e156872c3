package collyfetch_test

import (
	"bufio"
	"context"
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
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// hostileConfig is that of the tests with hostile servers.
var hostileConfig = collyfetch.Config{
	UserAgent: userAgent, AllowPrivate: true, MaxBody: 1 << 20, MaxHeader: 16 << 10,
	Timeout: 5 * time.Second, FirstByte: 2 * time.Second,
}

// inShort has the limits of time in which a slow server is given up.
func inShort(cfg collyfetch.Config) collyfetch.Config {
	cfg.Timeout, cfg.FirstByte = 2*time.Second, time.Second
	return cfg
}

// A hostile server is what it does with a connection on which a page was asked
// for, and what has to become of the visit.
type hostile struct {
	name  string
	slow  bool // it is given up for the time it takes
	serve func(io.Writer)
	err   string // part of the error; empty: a body that was cut
	kind  decorum.Kind
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

// says returns a server that says s, and then more without end.
func says(s, more string) func(io.Writer) {
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

// trickles returns a server that says s, and then more, a byte now and then.
func trickles(s, more string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, s)
		for i := 0; err == nil; i++ {
			time.Sleep(20 * time.Millisecond)
			_, err = io.WriteString(w, more[i%len(more):][:1])
		}
	}
}

// encoded returns a server with a body of zeros behind codings.
func encoded(t *testing.T, codings ...string) func(io.Writer) {
	body := encode(t, make([]byte, 64<<20), codings...)
	return says(fmt.Sprintf("%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", ok, strings.Join(codings, ", "), len(body), body), "")
}

func hostiles(t *testing.T) []hostile {
	const chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"
	const tooLong = "the header of the answer is longer than 16384 bytes"
	return []hostile{
		{name: "10 GB", serve: says(ok+"Content-Length: 10000000000\r\n\r\n", "spam and ")},
		{name: "a body without length or end", serve: says(ok+"\r\n", "spam and ")},
		{name: "chunks without end", serve: says(chunked, "5\r\nspam \r\n")},
		{name: "a gzip bomb", serve: encoded(t, "gzip")},
		{name: "a zstd bomb", serve: encoded(t, "zstd")},
		{name: "bombs in each other", serve: encoded(t, "br", "zstd", "gzip")},
		{name: "gzip of nothing, without end", serve: says(ok+"Content-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\x00\x00\x00\xff\xff"),
			err: "longer encoded than decoded bodies may be", kind: decorum.Malformed},
		{name: "zstd with a window of 2 TB", serve: says(ok+"Content-Encoding: zstd\r\nContent-Length: 9\r\n\r\n\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00", ""),
			err: "cannot be decoded (Content-Encoding: zstd): window size exceeded", kind: decorum.Malformed},
		{name: "headers without end", serve: says(ok, "X-Spam: and eggs\r\n"), err: tooLong, kind: decorum.Malformed},
		{name: "a header without end", serve: says(ok+"X-Spam: ", "and eggs "), err: tooLong, kind: decorum.Malformed},
		{name: "interim answers without end", serve: says("", "HTTP/1.1 103 Early Hints\r\n\r\n"), err: tooLong, kind: decorum.Malformed},
		{name: "an answer that never begins", slow: true, serve: func(w io.Writer) { io.Copy(io.Discard, w.(io.Reader)) }, err: "no answer within 1s"},
		{name: "a header byte by byte", slow: true, serve: trickles(ok, "X-Slow: loris\r\n"), err: "no answer within 1s"},
		{name: "a body byte by byte", slow: true, serve: trickles(ok+"\r\n", "slow "), err: "no whole answer within 2s"},
		{name: "no chunks", serve: says(chunked+"spam\r\n", ""), err: "the body is not chunked as it should be", kind: decorum.Malformed},
		{name: "a chunk of negative length", serve: says(chunked+"-5\r\nspam \r\n", ""), err: "the body is not chunked as it should be", kind: decorum.Malformed},
		{name: "a chunk longer than can be", serve: says(chunked+"ffffffffffffffffff\r\nspam", ""), err: "the body is not chunked as it should be", kind: decorum.Malformed},
		{name: "chunk extensions without end", serve: says(chunked+"5;", "spam"), err: "the body is not chunked as it should be", kind: decorum.Malformed},
		{name: "trailers without end", serve: says(chunked+"0\r\n", "X-Spam: and eggs\r\n"), err: "the body is not chunked as it should be", kind: decorum.Malformed},
		{name: "the last chunk is missing", serve: says(chunked+"5\r\nspam \r\n", ""), err: "the connection ended before the body did"},
		{name: "shorter than its Content-Length", serve: says(ok+"Content-Length: 10\r\n\r\nspam ", ""), err: "the connection ended after 5 of the 10 bytes of the body"},
		{name: "two Content-Lengths", serve: says(ok+"Content-Length: 5\r\nContent-Length: 7\r\n\r\nspam and", ""), err: "the answer is no proper HTTP", kind: decorum.Malformed},
		{name: "a negative Content-Length", serve: says(ok+"Content-Length: -5\r\n\r\nspam", ""), err: "the answer is no proper HTTP", kind: decorum.Malformed},
		{name: "no HTTP", serve: says("SSH-2.0-OpenSSH_9.2p1\r\n", ""), err: "the answer is no proper HTTP", kind: decorum.Malformed},
		{name: "status 000", serve: says("HTTP/1.1 000 None\r\nContent-Length: 4\r\n\r\nspam", ""), err: "less than 100", kind: decorum.Malformed},
		{name: "status 099", serve: says("HTTP/1.1 099 None\r\nContent-Length: 4\r\n\r\nspam", ""), err: "less than 100", kind: decorum.Malformed},
		{name: "nothing", serve: says("", ""), err: "EOF"},
		{name: "another protocol", serve: func(w io.Writer) {
			io.WriteString(w, switching)
			io.Copy(io.Discard, w.(io.Reader)) // until the crawl closes the connection
		}, err: "the server answers 101", kind: decorum.Malformed},
	}
}

// start serves on loopback. A robots.txt is answered with 404. It returns the
// server's address.
func (h hostile) start(t *testing.T) string {
	t.Helper()
	l := listen(t, "127.0.0.1:0")
	go accept(l, h.talk)
	return l.Addr().String()
}

func (h hostile) talk(c net.Conn) {
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	switch {
	case err != nil:
	case r.URL.Path == "/robots.txt":
		io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	default:
		h.serve(c)
	}
}

// allocated returns how many bytes have ever been allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestHostileServers: each is given up at its limit, with words of its own, and
// for a bounded amount of memory: this process's, servers included.
func TestHostileServers(t *testing.T) {
	for _, h := range hostiles(t) {
		t.Run(h.name, func(t *testing.T) {
			cfg := hostileConfig
			if h.slow {
				t.Parallel() // with the other slow ones, when all others are over
				cfg = inShort(cfg)
			}
			address := h.start(t)
			before := allocated()
			res, err := get(t, cfg, "http://"+address+"/page")
			switch {
			case h.err == "" && (err != nil || !res.Truncated || int64(len(res.Body)) != cfg.MaxBody):
				t.Errorf("got %v; want a body that was cut at %d bytes", err, cfg.MaxBody)
			case h.err != "" && (err == nil || !strings.Contains(err.Error(), h.err)):
				t.Errorf("got %v, want an error that says %q", err, h.err)
			case errors.Is(err, decorum.Malformed) != (h.kind == decorum.Malformed):
				t.Errorf("%v is of the wrong kind", err)
			}
			if used := allocated() - before; used > 64<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

// TestMoreThanItsContentLength: what follows a body is no part of it, and a
// connection on which something does is closed before the next visit, which is
// not at once: hosts rest.
func TestMoreThanItsContentLength(t *testing.T) {
	l, closed := listen(t, "127.0.0.1:0"), make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, err = http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, ok+"Content-Length: 5\r\n\r\nhello"+ok+"Content-Length: 4\r\n\r\nevil")
			io.Copy(io.Discard, c) // until the crawl hangs up
			closed <- errors.Join(err, c.Close())
		}
	}()
	fetcher, err := collyfetch.New(hostileConfig)
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

// TestHostileServersAreAlone: a crawl that visits all of them at once gets every
// page of a host that is well.
func TestHostileServersAreAlone(t *testing.T) {
	t.Parallel()
	var pages strings.Builder
	for i := range 20 {
		fmt.Fprintf(&pages, "<a href=/%d>x</a>", i)
	}
	good := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/robots.txt" {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, pages.String())
	})
	cfg := inShort(hostileConfig)
	seeds := []string{good}
	for i, h := range hostiles(t) {
		host := fmt.Sprintf("h%d.test", i)
		seeds = append(seeds, "http://"+host+"/page")
		to, err := collyfetch.ParseConnectTo(host + ":80:" + h.start(t))
		if err != nil {
			t.Fatal(err)
		}
		cfg.ConnectTo = append(cfg.ConnectTo, to)
	}
	crawl, _ := begin(t, collyfetch.Config{})
	fetcher, err := collyfetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	crawl.Fetcher, crawl.Handler = fetcher, nil
	crawl.Policy.Delay, crawl.Policy.Adaptive = politeness.NoDelay, -1
	crawl.Settings.Attempts, crawl.Settings.Workers = 1, 32
	var mu sync.Mutex
	visits := map[string]int{}
	crawl.Hooks.Visited = func(v *crawler.Visit) {
		mu.Lock()
		defer mu.Unlock()
		if !v.Clearance.ForRobots() {
			visits[v.URL().String()]++
		}
		if strings.HasPrefix(v.URL().String(), strings.TrimSuffix(good, "page")) && !v.Clearance.ForRobots() && !v.OK() {
			t.Errorf("%s of the good host: %v", v.URL(), v.Err)
		}
	}
	for _, s := range seeds {
		u, err := decorum.ParseURL(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := crawl.Frontier.Discover(t.Context(), storage.Entry{URL: u, Source: storage.Seed}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := crawl.Run(ctx); err != nil && !errors.Is(err, frontier.ErrDormant) {
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
