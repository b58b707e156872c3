package collyfetch_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
)

// A oneAddressWeb is a web whose hosts all have the same address.
type oneAddressWeb struct{ web *crawltest.Web }

func (s oneAddressWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	conn := &fakeConn{addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("93.184.216.34:80"))}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn, Reused: true})
	if conn.closed {
		return nil, net.ErrClosed
	}
	return s.web.RoundTrip(r)
}

// A fakeConn is a connection that counts whether it is closed.
type fakeConn struct {
	net.Conn
	addr   net.Addr
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.addr }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

// TestOnRequestOnce: if the address of a page's host is busy, OnRequest is called once, and the request
// is sent as OnRequest left it when the address is free. This happens if robots.txt is known from an
// earlier run, and the address is not.
func TestOnRequestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts = 40
		var sites []crawltest.Site
		for i := range hosts {
			sites = append(sites, crawltest.Site{Host: fmt.Sprintf("h%d.test", i),
				Latency: crawltest.Latency{Base: time.Second},
				Fallback: func(r crawltest.PageRequest) crawltest.Response {
					return crawltest.ResponseOfType("text/html", "<h1>"+r.Header.Get("X-Turn")+"</h1>\xe9")
				}})
		}
		o := quietOptions(oneAddressWeb{crawltest.New(sites...)})
		o.LimiterConfig.IPConcurrency, o.Settings.Workers = 1, hosts
		o.StateDir = filepath.Join(t.TempDir(), "state")
		visit := func(c *collyfetch.Crawl, path string) {
			for i := range hosts {
				must(t, c.Visit(fmt.Sprintf("http://h%d.test/%s", i, path)))
			}
			c.Wait()
		}
		earlier, err := collyfetch.Wrap(colly.NewCollector(colly.Async(true)), o)
		must(t, err)
		visit(earlier, "before")
		must(t, earlier.Close())

		var mu sync.Mutex
		c := wrapCollector(t, colly.NewCollector(colly.Async(true)), o)
		calls, answered := map[string]int{}, map[string]string{}
		c.OnRequest(func(r *colly.Request) {
			mu.Lock()
			defer mu.Unlock()
			calls[r.URL.Host]++
			r.Headers.Set("X-Turn", fmt.Sprint(r.URL.Host, calls[r.URL.Host]))
			r.Ctx.Put("turn", fmt.Sprint(calls[r.URL.Host]))
			r.ResponseCharacterEncoding = "iso-8859-1"
		})
		c.OnResponse(func(r *colly.Response) {
			mu.Lock()
			defer mu.Unlock()
			answered[r.Request.URL.Host] = r.Ctx.Get("turn") + string(r.Body)
		})
		visit(c, "")
		for i := range hosts {
			h := fmt.Sprintf("h%d.test", i)
			if want := "1<h1>" + h + "1</h1>é"; calls[h] != 1 || answered[h] != want {
				t.Errorf("%s: OnRequest was called %d times, answered %q, want once and %q", h,
					calls[h], answered[h], want)
			}
		}
	})
}
