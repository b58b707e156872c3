package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

// An addressedWeb is a web whose connections have addresses, reported as net/http does.
type addressedWeb struct {
	web    *crawltest.Web
	addrOf func(string) netip.Addr
}

func (w addressedWeb) RoundTrip(r *http.Request) (*http.Response, error) {
	addr := w.addrOf(r.URL.Hostname())
	conn := &fakeConn{addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, 80))}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn, Reused: true})
	if conn.closed {
		return nil, net.ErrClosed
	}
	return w.web.RoundTrip(r)
}

// A fakeConn is a connection that only remembers whether it was closed.
type fakeConn struct {
	net.Conn
	addr   net.Addr
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.addr }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

// oneAddress gives every host of a test the same address.
func oneAddress(string) netip.Addr { return netip.MustParseAddr("93.184.216.34") }

// onePageSites returns n sites of one page each, and their seeds.
func onePageSites(n int, latency crawltest.Latency) (sites []crawltest.Site, seeds []string) {
	for i := range n {
		host := fmt.Sprintf("h%d.test", i)
		sites = append(sites, crawltest.Site{Host: host, Fallback: pageWithLinks(), Latency: latency})
		seeds = append(seeds, "http://"+host+"/")
	}
	return sites, seeds
}

// newLimitedCrawl returns a crawl like newCrawl's, with limits, over an addressedWeb.
func newLimitedCrawl(t *testing.T, w addressedWeb, store storage.Store, cfg politeness.LimiterConfig,
	seeds ...string) *crawler.Crawler {
	t.Helper()
	c := newCrawl(t, w.web, store)
	c.Fetcher = newFetcher(t, w)
	c.Limiter = politeness.NewLimiter(cfg)
	c.Frontier = frontier.New(store, frontier.Config{Budget: c.Limiter})
	addSeeds(t, c, seeds...)
	return c
}

// measureConcurrency returns the most concurrent requests of a log, the shortest time between an
// end and the next start, and the last end.
func measureConcurrency(log []crawltest.Exchange) (maxConcurrent int, minGap time.Duration, end time.Time) {
	minGap = time.Hour
	for i, x := range log {
		concurrent := 1
		for _, y := range log[:i] {
			switch pause := x.Start.Sub(y.End); {
			case pause < 0:
				concurrent++
			default:
				minGap = min(minGap, pause)
			}
		}
		maxConcurrent = max(maxConcurrent, concurrent)
		if x.End.After(end) {
			end = x.End
		}
	}
	return maxConcurrent, minGap, end
}

// TestHostsOfAnAddressShareIt: a crawl of 500 hosts on one address takes no longer than the
// address's rest requires, and does not lease waiting URLs again and again.
func TestHostsOfAnAddressShareIt(t *testing.T) {
	const hosts, visits, latency = 500, 1000, 300 * time.Millisecond
	for _, tt := range []struct {
		slots int
		rest  time.Duration
	}{{2, 0}, {2, 2 * time.Second}, {1, 2 * time.Second}, {1, 0}, {5, 0}} {
		t.Run(fmt.Sprintf("%d at a time, rest %v", tt.slots, tt.rest), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sites, seeds := onePageSites(hosts, crawltest.Latency{Base: latency})
				web := crawltest.New(sites...)
				c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, newMemoryStore(),
					politeness.LimiterConfig{IPConcurrency: tt.slots, IPDelay: tt.rest}, seeds...)
				var leases atomic.Int64
				c.Hooks.Acked = func(storage.Ack) { leases.Add(1) }
				c.Hooks.Visited = func(v *crawler.Visit) {
					if v.RequiredDelay() > time.Second {
						t.Errorf("%v: required rest %v, want the policy's", v.URL(), v.RequiredDelay())
					}
				}
				begin := time.Now()
				if err := c.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				log := web.Log()
				if len(log) != visits {
					t.Errorf("%d requests, want %d", len(log), visits)
				}
				maxConcurrent, minGap, end := measureConcurrency(log)
				if maxConcurrent != tt.slots || minGap < tt.rest {
					t.Errorf("%d at a time, %v apart", maxConcurrent, minGap)
				}
				minTime := visits/time.Duration(tt.slots)*(latency+tt.rest) - tt.rest
				if took := end.Sub(begin); took > minTime*102/100 {
					t.Errorf("took %v, possible were %v", took, minTime)
				}
				if n := leases.Load(); n > 2*visits+3*hosts/2 {
					t.Errorf("%d leases for %d visits", n, visits)
				}
				checkPoliteness(t, web, time.Second)
				t.Logf("%v of %v, %d leases for %d visits", end.Sub(begin), minTime, leases.Load(), visits)
			})
		})
	}
}

// TestAddressesOfManyKinds: hosts on a few addresses, with slow answers, failures, and hosts that
// move.
func TestAddressesOfManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const addresses, rest = 4, time.Second
		sites, seeds := onePageSites(80,
			crawltest.Latency{Base: 50 * time.Millisecond, Jitter: 2 * time.Second, Seed: 1})
		for i := range sites {
			links := []string{"/1", "/2", fmt.Sprintf("https://h%d.test/3", i)}
			pages := map[string]crawltest.PageFunc{"/2": crawltest.StaticPage(crawltest.Status(503))}
			if i%7 == 0 {
				pages["/1"] = crawltest.StaticPage(crawltest.Response{Fault: crawltest.Reset})
			}
			sites[i].Fallback, sites[i].Pages = pageWithLinks(links...), pages
		}
		web := crawltest.New(sites...)
		addrOf := func(host string) netip.Addr {
			var i int
			fmt.Sscanf(host, "h%d.test", &i)
			i += int(time.Now().Unix() / 300 % 2) // the hosts move every five minutes
			return netip.AddrFrom4([4]byte{93, 184, 216, byte(i % addresses)})
		}
		c := newLimitedCrawl(t, addressedWeb{web, addrOf}, newMemoryStore(),
			politeness.LimiterConfig{IPConcurrency: 2, IPDelay: rest}, seeds...)
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		logs := map[netip.Addr][]crawltest.Exchange{}
		for _, x := range web.Log() {
			var i int
			fmt.Sscanf(x.URL[strings.Index(x.URL, "://")+3:], "h%d.test", &i)
			i += int(x.Start.Unix() / 300 % 2)
			addr := netip.AddrFrom4([4]byte{93, 184, 216, byte(i % addresses)})
			logs[addr] = append(logs[addr], x)
		}
		for addr, log := range logs {
			if maxConcurrent, minGap, _ := measureConcurrency(log); maxConcurrent > 2 || minGap < rest {
				t.Errorf("%v: %d at a time, %v apart", addr, maxConcurrent, minGap)
			}
		}
		if _, times := countRequests(web.Log()); len(times) != 80*8 {
			t.Errorf("%d URLs were visited, want 640", len(times))
		}
		checkPoliteness(t, web, time.Second)
	})
}

// TestStopEndsWaiting: after a stop, the next run does not wait for a wake-up that never comes.
func TestStopEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(40, crawltest.Latency{Base: time.Second})
		web, store := crawltest.New(sites...), newMemoryStore()
		cfg := politeness.LimiterConfig{IPConcurrency: 1, IPDelay: 2 * time.Second}
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, store, cfg, seeds...)
		c.Settings.MaxPages = 3
		if err := c.Run(t.Context()); !errors.Is(err, crawler.ErrPages) {
			t.Fatal(err)
		}
		before, begin := len(web.Log()), time.Now()
		cfg.RestartedAt = begin
		if err := newLimitedCrawl(t, addressedWeb{web, oneAddress}, store, cfg).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if len(log) != 80 {
			t.Errorf("%d requests, want 80", len(log))
		}
		if first := log[before].Start.Sub(begin); first != 2*time.Second {
			t.Errorf("the first request of the second run came after %v, want the rest of the address, 2s", first)
		}
		if took, minTime := time.Since(begin), time.Duration(80-before)*3*time.Second; took > minTime*102/100 {
			t.Errorf("took %v, possible were %v", took, minTime)
		}
		if maxConcurrent, minGap, _ := measureConcurrency(log); maxConcurrent > 1 || minGap < 2*time.Second {
			t.Errorf("%d at a time, %v apart", maxConcurrent, minGap)
		}
	})
}

// TestAbortedVisitIsNotCounted: hooks and counts see nothing of an aborted visit, and the page
// limit counts only pages that were visited.
func TestAbortedVisitIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(10, crawltest.Latency{Base: time.Second})
		web := crawltest.New(sites...)
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, newMemoryStore(),
			politeness.LimiterConfig{IPConcurrency: 1}, seeds...)
		var refused atomic.Int64
		c.Hooks.VisitRefused = func(storage.Lease, decorum.Decision) { refused.Add(1) }
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := crawler.Stats{Pages: 10, RobotsFetches: 10,
			HostTraffic: crawler.HostTraffic{Requests: 20, Bytes: c.Stats().Bytes}}
		if got := c.Stats(); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		if refused.Load() == 0 {
			t.Error("no visit was refused")
		}
		if urls, _ := countRequests(web.Log()); len(urls) != 20 || !slices.Contains(urls, "http://h9.test/") {
			t.Errorf("%d requests, want 20", len(urls))
		}
	})
}

// A fetcherWithConnections says of each visit that it opened a connection and sent a byte.
type fetcherWithConnections struct {
	crawler.Fetcher
	connections atomic.Int64
}

func (f *fetcherWithConnections) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	f.connections.Add(1)
	defer t.SetConnection(crawler.ConnectionUse{Opened: true, WireBytesSent: 1})
	return f.Fetcher.Fetch(ctx, t)
}

// TestConnectionOfAbortedVisit: the connection of an aborted visit has cost its host something, although it
// got no request.
func TestConnectionOfAbortedVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(10, crawltest.Latency{Base: time.Second})
		store := newMemoryStore()
		c := newLimitedCrawl(t, addressedWeb{crawltest.New(sites...), oneAddress}, store,
			politeness.LimiterConfig{IPConcurrency: 1}, seeds...)
		fetcher := &fetcherWithConnections{Fetcher: c.Fetcher}
		c.Fetcher = fetcher
		var mu sync.Mutex // guards hooked
		var hooked crawler.HostTraffic
		add := func(traffic crawler.HostTraffic) {
			mu.Lock()
			defer mu.Unlock()
			hooked.Add(traffic)
		}
		c.Hooks.Visited = func(v *crawler.Visit) { add(v.Traffic()) }
		c.Hooks.VisitAborted = func(_ storage.Lease, traffic crawler.HostTraffic) { add(traffic) }
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		connections := fetcher.connections.Load()
		want := crawler.HostTraffic{Requests: 20, Bytes: c.Stats().Bytes, Connections: connections,
			WireBytesSent: connections}
		var stored crawler.HostTraffic
		for _, seed := range seeds {
			stored.Add(storedHostStats(t, store, strings.TrimSuffix(seed, "/")).HostTraffic)
		}
		if got := c.Stats().HostTraffic; got != want || stored != want || hooked != want || connections <= 20 {
			t.Errorf("the run counted %+v, the hosts have %+v, the hooks got %+v, want %+v", got, stored, hooked, want)
		}
	})
}

// TestAbortedPageIsNotCounted: ten hosts move to one address before their pages are visited, so
// nine of ten are refused after they were counted.
func TestAbortedPageIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(10, crawltest.Latency{Base: 100 * time.Millisecond})
		web, begin := crawltest.New(sites...), time.Now()
		c := newLimitedCrawl(t, addressedWeb{web, func(host string) netip.Addr {
			if time.Since(begin) < time.Second {
				return netip.AddrFrom4([4]byte{93, 184, 216, host[1]})
			}
			return oneAddress(host)
		}}, newMemoryStore(), politeness.LimiterConfig{IPConcurrency: 1}, seeds...)
		c.Settings.MaxPages = 10
		if err := c.Run(t.Context()); err != nil {
			t.Errorf("ended with %v", err)
		}
		if n := c.Stats().Pages; n != 10 {
			t.Errorf("%d pages, want 10", n)
		}
	})
}

// TestASlowHandlerHoldsNoAddress: the address is free as soon as the answer has arrived.
func TestASlowHandlerHoldsNoAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(5, crawltest.Latency{Base: 100 * time.Millisecond})
		web := crawltest.New(sites...)
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, newMemoryStore(),
			politeness.LimiterConfig{IPConcurrency: 1}, seeds...)
		c.Policy.Delay, c.Policy.AdaptiveFactor = politeness.NoDelay, -1
		c.Handler = func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) {
			time.Sleep(time.Minute)
			return nil, nil
		}
		begin := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		log := web.Log()
		if last := log[len(log)-1].Start.Sub(begin); len(log) != 10 || last > 1200*time.Millisecond {
			t.Errorf("%d requests, the last after %v", len(log), last)
		}
	})
}

// A slowHoldStore is slow to set long holds.
type slowHoldStore struct{ storage.Store }

func (s slowHoldStore) Hold(ctx context.Context, o decorum.Origin, until time.Time, suspended bool) error {
	if time.Until(until) > time.Second {
		time.Sleep(400 * time.Millisecond)
	}
	return s.Store.Hold(ctx, o, until, suspended)
}

// TestWakeBeforeWait: a wake-up that comes before the host has begun to wait is not lost.
func TestWakeBeforeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites, seeds := onePageSites(2, crawltest.Latency{Base: 300 * time.Millisecond})
		web, begin := crawltest.New(sites...), time.Now()
		c := newLimitedCrawl(t, addressedWeb{web, oneAddress}, slowHoldStore{newMemoryStore()},
			politeness.LimiterConfig{IPConcurrency: 1}, seeds...)
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if second := web.Log()[1].Start.Sub(begin); second > 500*time.Millisecond {
			t.Errorf("the second host waited %v for an address that was free after 300ms", second)
		}
	})
}
