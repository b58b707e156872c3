package httpfetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// serveAddr serves h on loopback until the test ends, and returns the address.
func serveAddr(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// gzipped returns text compressed with gzip.
func gzipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBodiesShareMemory: with memory for two growing bodies, 64 workers visit every page and every
// robots.txt of 80 hosts, although nearly every body needs all the memory that is left. A visit that
// gets no memory counts neither as a failure of its page nor of its host, and the log has one line.
func TestBodiesShareMemory(t *testing.T) {
	const hosts = 80
	page := gzipped(t, bytes.Repeat([]byte("<p>All happy families are alike.</p>\n"), 2<<20/37))
	rules := gzipped(t, append([]byte("User-agent: *\nDisallow: /no\n"),
		bytes.Repeat([]byte("# nothing\n"), 1<<20/10)...))
	for _, capture := range []bool{false, true} {
		t.Run(fmt.Sprint("capture ", capture), func(t *testing.T) {
			// No response continues before one visit got no memory, so that bodies hold memory at once.
			denied := make(chan struct{})
			address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) {
				body := page
				if r.URL.Path == "/robots.txt" {
					body = rules
				}
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write(body[:len(body)/2])
				w.(http.Flusher).Flush()
				select {
				case <-denied:
				case <-r.Context().Done():
				}
				_, _ = w.Write(body[len(body)/2:])
			})
			memory, err := bodymem.New(bodymem.MinSize)
			if err != nil {
				t.Fatal(err)
			}
			cfg := hostileConfig
			cfg.MaxBody, cfg.BodyMemory, cfg.CaptureExchanges = 3<<20, memory, capture
			cfg.Timeout, cfg.FirstByteTimeout = time.Minute, time.Minute
			crawl := newCrawlOfHosts(t, hosts, address, cfg)
			var log bytes.Buffer
			crawl.Log = slog.New(slog.NewTextHandler(&log, nil))
			var mu sync.Mutex
			pages := map[string]int{}
			closeDenied := sync.OnceFunc(func() { close(denied) })
			crawl.Hooks.Visited = func(v *crawler.Visit) {
				mu.Lock()
				defer mu.Unlock()
				full := new(bodymem.FullError)
				switch {
				case errors.As(v.Err, &full):
					closeDenied()
				case v.Err != nil || v.Lease.FailedAttempts > 0:
					t.Errorf("%s: %v, attempt %d", v.URL(), v.Err, v.Lease.FailedAttempts)
				case !v.Clearance.IsForRobots():
					pages[v.URL().String()]++
					if len(v.Response.Body) == 0 || capture && v.Exchange == nil {
						t.Errorf("%s: %d bytes", v.URL(), len(v.Response.Body))
					}
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := crawl.Run(ctx); err != nil {
				t.Fatal(err)
			}
			st, use := crawl.Stats(), memory.Usage()
			if len(pages) != hosts || st.RobotsFetches < hosts || st.Retries+st.GivenUp+st.Errors+st.Panics != 0 {
				t.Errorf("%d of %d pages were visited: %+v", len(pages), hosts, st)
			}
			if st.MemoryDeniedVisits == 0 || use.DeniedVisits != st.MemoryDeniedVisits ||
				use.Bytes != 0 || use.WaitingVisits != 0 {
				t.Errorf("%d visits got no memory, and the memory says %+v", st.MemoryDeniedVisits, use)
			}
			if n := strings.Count(log.String(), "bodies take all of their memory"); n != 1 {
				t.Errorf("the log has %d lines about memory, want 1:\n%s", n, &log)
			}
		})
	}
}

// TestSitemapsAreStreamed: hosts whose sitemaps of 50 MiB compress well stay within the memory for
// bodies, and the URLs of their sitemaps are queued.
func TestSitemapsAreStreamed(t *testing.T) {
	const hosts = 6
	list := []byte("<urlset>\n")
	for i := range 3 {
		list = fmt.Appendf(list, "<url><loc>/%d</loc></url>\n", i)
	}
	list = append(list, bytes.Repeat([]byte("<!-- nothing -->\n"), (50<<20-1000)/17)...)
	list = append(list, "<url><loc>/last</loc></url></urlset>"...)
	bomb := gzipped(t, list)
	address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprintf(w, "User-agent: *\nAllow: /\nSitemap: http://%s/sitemap.xml\n", r.Host)
		case "/sitemap.xml":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		default:
			_, _ = io.WriteString(w, "<p>a page</p>")
		}
	})
	list = nil
	memory, err := bodymem.New(bodymem.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	cfg := hostileConfig
	cfg.MaxBody, cfg.BodyMemory, cfg.Timeout, cfg.FirstByteTimeout = 10<<20, memory, time.Minute, time.Minute
	crawl := newCrawlOfHosts(t, hosts, address, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := crawl.Run(ctx); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	st, use := crawl.Stats(), memory.Usage()
	if st.SitemapFetches != hosts || st.Pages != 5*hosts || st.Errors != 0 || st.MemoryDeniedVisits != 0 {
		t.Errorf("got %+v; want %d sitemaps and %d pages", st, hosts, 5*hosts)
	}
	if st.Bytes < hosts*49<<20 {
		t.Errorf("%d bytes were counted", st.Bytes)
	}
	if use.PeakBytes > memory.Size() || use.Bytes != 0 {
		t.Errorf("got %+v of %d bytes", use, memory.Size())
	}
	// This is the sum over time, not what is in use at once. With bodies in memory it would be at
	// least hosts × 50 MiB. Under the race detector, whose pools drop some of what they are given,
	// it is hosts × 28 MiB.
	if spent := after.TotalAlloc - before.TotalAlloc; spent > hosts*40<<20 {
		t.Errorf("%d MiB were allocated for %d sitemaps of 50 MiB", spent>>20, hosts)
	}
}

// TestTooLongForMemory: a page that would not fit into the whole memory is cut, as a page longer
// than MaxBody is.
func TestTooLongForMemory(t *testing.T) {
	random := make([]byte, 20<<20)
	var noise bytes.Buffer
	for i := range random {
		noise.WriteByte("0123456789abcdef"[(i*i*7919+i>>3*31+i>>11)&15])
	}
	address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(noise.Bytes()) })
	memory, err := bodymem.New(bodymem.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	cfg := hostileConfig
	cfg.MaxBody, cfg.BodyMemory = 100<<20, memory
	res, err := fetchPage(t, cfg, "http://"+address+"/page")
	if err != nil || !res.BodyLimitExceeded || int64(len(res.Body)) != memory.MaxBodyLen(1) ||
		!bytes.HasPrefix(noise.Bytes(), res.Body) {
		t.Fatalf("got %v, want a body that was cut at %d bytes", err, memory.MaxBodyLen(1))
	}
	if use := memory.Usage(); use.Bytes != 0 || use.PeakBytes > memory.Size() {
		t.Errorf("got %+v of %d bytes", use, memory.Size())
	}
}

// TestSitemapTooLongForMemory: if a compressed sitemap does not fit into the whole memory, its
// beginning is used, and the log says that it was cut.
func TestSitemapTooLongForMemory(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprintf(w, "User-agent: *\nAllow: /\nSitemap: http://%s/sitemap.xml\n", r.Host)
		case "/sitemap.xml":
			_, _ = io.WriteString(w, "<urlset><url><loc>/first</loc></url><!--")
			_, _ = io.CopyN(hex.NewEncoder(w), random, 10<<20)
			_, _ = io.WriteString(w, "--><url><loc>/last</loc></url></urlset>")
		}
	})
	memory, err := bodymem.New(bodymem.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	cfg := hostileConfig
	cfg.BodyMemory, cfg.Timeout, cfg.FirstByteTimeout = memory, time.Minute, time.Minute
	crawl := newCrawlOfHosts(t, 1, address, cfg)
	var log bytes.Buffer
	crawl.Log = slog.New(slog.NewTextHandler(&log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := crawl.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if st := crawl.Stats(); st.Pages != 2 || st.MemoryDeniedVisits != 0 || memory.Usage().PeakBytes > memory.Size() {
		t.Errorf("got %+v, %+v; want the page and the first of the sitemap", st, memory.Usage())
	}
	if !strings.Contains(log.String(), "--body-memory") {
		t.Errorf("the log does not say what is wrong with the sitemap:\n%s", &log)
	}
}

// TestUnsafeRequestsReserveFirst: a POST waits until memory is free, and is then sent once.
func TestUnsafeRequestsReserveFirst(t *testing.T) {
	memory, err := bodymem.New(bodymem.MinSize)
	if err != nil {
		t.Fatal(err)
	}
	other := new(bodymem.VisitShare)
	memory.OpenShare(other, "other")
	if err := other.Reserve(t.Context(), 6<<20); err != nil {
		t.Fatal(err)
	}
	sent := make(chan time.Time, 10)
	address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent <- time.Now()
		}
		_, _ = w.Write(make([]byte, 1<<20))
	})
	crawl := newCrawl(t, newFetcher(t, httpfetch.Config{AllowPrivate: true, BodyMemory: memory, MaxBody: 2 << 20}))
	form, err := decorum.ParseURL("http://" + address + "/form")
	must(t, err)
	post := &storage.NonGETRequest{Method: http.MethodPost, Body: []byte("a=b")}
	_, err = crawl.Frontier.Discover(t.Context(), storage.Entry{URL: form, Source: storage.SourceSeed, Request: post})
	must(t, err)
	given := make(chan time.Time, 1)
	go func() {
		for memory.Usage().WaitingVisits == 0 {
			time.Sleep(time.Millisecond)
		}
		given <- time.Now()
		other.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := crawl.Run(ctx); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
		t.Fatal(err)
	}
	if at := <-sent; at.Before(<-given) || len(sent) > 0 {
		t.Error("the request was sent before there was memory, or twice")
	}
	if st := crawl.Stats(); st.Pages != 1 || st.InDoubt != 0 || memory.Usage().Bytes != 0 {
		t.Errorf("got %+v, %+v", st, memory.Usage())
	}
}

// TestPanicGivesMemoryBack: a decoder that panics on a hostile body releases the visit's memory.
func TestPanicGivesMemoryBack(t *testing.T) {
	memory, err := bodymem.New(bodymem.MinSize)
	must(t, err)
	answer := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		body := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), panickingReader{})
		return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r,
			Body: io.NopCloser(body), ContentLength: -1}, nil
	})
	f, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: answer, BodyMemory: memory})
	must(t, err)
	ticket := pageTicket(t, "http://a.test/page")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the body did not panic")
			}
		}()
		_, _ = f.Fetch(t.Context(), ticket)
	}()
	if use := memory.Usage(); use.Bytes != 0 || use.PeakBytes < 1<<20 {
		t.Errorf("got %+v, want nothing in use", use)
	}
}

type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("cannot be decoded") }

// TestCapturedCounts: the captured bytes of an incomplete response count against the memory until
// they are archived, and the exchange of a sitemap says that it was cut at a length limit.
func TestCapturedCounts(t *testing.T) {
	const part = 300 << 10
	address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nAllow: /\n")
			if strings.HasPrefix(r.Host, "h0.") {
				fmt.Fprint(w, "Sitemap: http://h0.test/sitemap.xml\n")
			}
		case "/sitemap.xml":
			_, _ = io.WriteString(w, "<urlset>"+strings.Repeat(" ", 10_000)+"</urlset>")
		default:
			if strings.HasPrefix(r.Host, "h0.") { // failures would suspend it before its sitemap is visited
				return
			}
			w.Header().Set("Content-Length", "10000000")
			_, _ = w.Write(make([]byte, part))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	memory, err := bodymem.New(bodymem.MinSize)
	must(t, err)
	cfg := hostileConfig
	cfg.BodyMemory, cfg.CaptureExchanges, cfg.Timeout = memory, true, 300*time.Millisecond
	crawl := newCrawlOfHosts(t, 2, address, cfg)
	crawl.Settings.MaxSitemapBody = 1000
	var mu sync.Mutex // guards cuts
	cuts := map[string]decorum.TruncationReason{}
	crawl.Hooks.Visited = func(v *crawler.Visit) {
		if v.Exchange == nil {
			t.Errorf("nothing of %s was captured", v.URL())
			return
		}
		mu.Lock()
		defer mu.Unlock()
		cuts[v.URL().String()] = v.Exchange.Truncation
		if n := int64(len(v.Exchange.RawResponse)); v.Response == nil && (n < part || memory.Usage().Bytes < n) {
			t.Errorf("%d bytes of %s were captured, and %+v are in use", n, v.URL(), memory.Usage())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := crawl.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if cuts["http://h0.test/sitemap.xml"] != decorum.TruncatedByLength ||
		cuts["http://h1.test/page"] != decorum.TruncatedByTime ||
		memory.Usage().Bytes != 0 {
		t.Errorf("got %v, and %+v at the end", cuts, memory.Usage())
	}
}

// A pageRecorder compares the body and the links of each page with its path, and keeps them.
type pageRecorder struct {
	mu    sync.Mutex // guards pages and wrong
	pages []recordedPage
	wrong int
}

type recordedPage struct {
	path  string
	body  []byte
	links []crawler.LinkToVisit
}

// Record implements crawler.Recorder. It compares the page for a while, in which other visits read theirs.
func (r *pageRecorder) Record(_ context.Context, v *crawler.Visit) error {
	page := recordedPage{v.URL().PathAndQuery(), v.Response.Body, v.Links}
	isWrong := false
	for range 50 {
		isWrong = isWrong || !page.isIntact()
		runtime.Gosched()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages = append(r.pages, page)
	if isWrong {
		r.wrong++
	}
	return nil
}

// linkTo returns the text of which the page at path consists, once or several times.
func linkTo(path string) string { return "<a href=" + path + ">" }

// isIntact reports whether body and links are those of the page.
func (p recordedPage) isIntact() bool {
	text := []byte(linkTo(p.path))
	return len(p.links) > 0 && bytes.Equal(p.body, bytes.Repeat(text, len(p.body)/len(text))) &&
		!slices.ContainsFunc(p.links, func(l crawler.LinkToVisit) bool { return l.URL.PathAndQuery() != p.path })
}

// TestReusedMemory: while a visit lasts, no other visit writes into its body or links, with and without content
// coding, for short and long bodies. Without Settings.ReuseVisitMemory, and with a Handler, which may keep them,
// no later visit does either.
func TestReusedMemory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ reuse, handler, isReused bool }{
		{true, false, true}, {false, false, false}, {true, true, false},
	} {
		address := serveAddr(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				return
			}
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
			body := strings.Repeat(linkTo(r.URL.Path), 1+n*50)
			w.Header().Set("Content-Type", "text/html")
			switch n % 3 {
			case 0:
				w.Header().Set("Content-Encoding", "gzip")
				body = gzipString(body)
			case 1:
				w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			}
			_, _ = io.WriteString(w, body)
		})
		var pages []string
		for i := range 200 {
			pages = append(pages, fmt.Sprintf("http://h%d.test/%d", i%8, i))
		}
		crawl := newCrawl(t, newFetcher(t, connectingTo(t, hostileConfig, address)), pages...)
		crawl.Policy.Delay, crawl.Policy.AdaptiveFactor = politeness.NoDelay, -1
		crawl.Settings.ReuseVisitMemory, crawl.Settings.Workers = tt.reuse, 8
		if tt.handler {
			crawl.Handler = crawl.LinksToFollow
		}
		recorder := new(pageRecorder)
		crawl.PageRecorder = recorder
		must(t, crawl.Run(t.Context()))
		if len(recorder.pages) != len(pages) || recorder.wrong > 0 {
			t.Errorf("%+v: %d pages, %d of which changed during their visit", tt, len(recorder.pages), recorder.wrong)
		}
		changed := 0
		for _, page := range recorder.pages {
			if !page.isIntact() {
				changed++
			}
		}
		if (changed > 0) != tt.isReused {
			t.Errorf("%+v: %d pages have changed after their visit", tt, changed)
		}
	}
}
