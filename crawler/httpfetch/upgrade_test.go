package httpfetch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
	"github.com/decorum-crawler/decorum/politeness"
)

const switchingProtocols = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spam\r\n\r\n"

// An upgrader answers requests for one path with 101, and holds the connection until the client closes
// it.
type upgrader struct {
	upgradePath string // the path that gets a 101
	conns       atomic.Int32
}

func (u *upgrader) serveConn(c net.Conn) {
	u.conns.Add(1)
	defer u.conns.Add(-1)
	defer c.Close()
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	answer := "<p>a page</p>"
	switch {
	case r.URL.Path == u.upgradePath:
		io.WriteString(c, switchingProtocols)
		io.Copy(io.Discard, c)
		return
	case r.URL.Path == "/robots.txt":
		answer = "User-agent: *\nAllow: /\nSitemap: http://" + r.Host + "/sitemap.xml\n"
	}
	fmt.Fprintf(c, "%sConnection: close\r\nContent-Length: %d\r\n\r\n%s", okHeader, len(answer), answer)
}

// newCrawlOfHosts returns a crawl of one page on each of the given number of hosts, which share one
// address.
func newCrawlOfHosts(t *testing.T, hosts int, address string, cfg httpfetch.Config) *crawler.Crawler {
	t.Helper()
	cfg.ConnectToRules = append(cfg.ConnectToRules, "::"+address)
	var pages []string
	for i := range hosts {
		pages = append(pages, fmt.Sprintf("http://h%d.test/page", i))
	}
	crawl := newCrawl(t, newFetcher(t, cfg), pages...)
	crawl.Policy.Delay, crawl.Policy.AdaptiveFactor = politeness.NoDelay, -1
	crawl.Settings.MaxAttempts, crawl.Settings.Workers = 1, 64
	return crawl
}

// errEnough stops a crawl once a test has what it needs.
var errEnough = errors.New("enough was seen")

// TestUpgradesHoldNoWorker: a 101 for a page, a robots.txt or a sitemap, on a connection that the
// server holds open, occupies a worker no longer than any other response.
func TestUpgradesHoldNoWorker(t *testing.T) {
	const hosts = 80 // more than the crawl has workers
	for _, visit := range []string{"/page", "/robots.txt", "/sitemap.xml"} {
		t.Run(visit, func(t *testing.T) {
			t.Parallel()
			u := &upgrader{upgradePath: visit}
			l := testlisten.Listen(t, "127.0.0.1:0")
			go testlisten.Serve(l, u.serveConn)
			cfg := hostileConfig
			cfg.Timeout, cfg.FirstByteTimeout = time.Hour, time.Hour // no limit ends the visits
			crawl := newCrawlOfHosts(t, hosts, l.Addr().String(), cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			run, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			var mu sync.Mutex
			malformed := 0
			crawl.Hooks.Visited = func(v *crawler.Visit) {
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(v.Err, decorum.Malformed) && strings.HasSuffix(v.URL().String(), visit) {
					if malformed++; malformed == hosts {
						stop(errEnough) // repeated requests come after minutes
					}
				}
			}
			if err := crawl.Run(run); err != nil && !errors.Is(err, errEnough) {
				t.Fatal(err)
			}
			if malformed < hosts {
				t.Errorf("%d visits were malformed, want one of each of %d hosts", malformed, hosts)
			}
			for u.conns.Load() > 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if ctx.Err() != nil {
				t.Errorf("%d connections are still open", u.conns.Load())
			}
		})
	}
}

// An uncancelledTransport hides the end of a visit from net/http, so that net/http reads any body as
// it reads the body of an upgrade.
type uncancelledTransport struct{ http.RoundTripper }

func (d uncancelledTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return d.RoundTripper.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
}

// TestBodiesEndWithTheVisit: reading a body that hangs, or arrives byte by byte, ends at the visit's
// time limit and when the crawl stops, even if the reader ignores both.
func TestBodiesEndWithTheVisit(t *testing.T) {
	const head = okHeader + "Content-Length: 100000\r\n\r\n"
	hang := func(w io.Writer) {
		io.WriteString(w, head)
		io.Copy(io.Discard, w.(io.Reader))
	}
	for _, tt := range []struct {
		name  string
		serve func(io.Writer)
		halt  bool
		err   string
	}{
		{"it hangs", hang, false, "no whole answer within 300ms"},
		{"it comes byte by byte", sendSlowly(head, "slow "), false, "no whole answer within 300ms"},
		{"it hangs, and the crawl is stopped", hang, true, "stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{})
			address := hostileServer{respond: func(w io.Writer) { close(begun); tt.serve(w) }}.start(t)
			cfg := hostileConfig
			cfg.Timeout, cfg.FirstByteTimeout = 300*time.Millisecond, 300*time.Millisecond
			if tt.halt {
				cfg.Timeout, cfg.FirstByteTimeout = time.Hour, time.Hour
			}
			cfg.Transport = uncancelledTransport{httpfetch.NewNetHTTPTransport(cfg)}
			fetcher, err := httpfetch.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			defer stop(nil)
			ended := make(chan error, 1)
			go func() {
				_, err := fetcher.Fetch(ctx, pageTicket(t, "http://"+address+"/page"))
				ended <- err
			}()
			<-begun
			if tt.halt {
				stop(errors.New("stopped"))
			}
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the visit does not end")
			}
		})
	}
}
