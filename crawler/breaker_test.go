package crawler_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/crawltest"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// An outage is a network that fails between two times: no request arrives, and each fails with the
// error that fail returns.
type outage struct {
	web      http.RoundTripper
	from, to time.Time
	fail     func(*http.Request) error
	// isReachable reports whether a host is reachable during the outage; nil: none is.
	isReachable func(host string) bool

	mu           sync.Mutex           // guards failures, lastFailure and earlyRetries
	failures     int                  // failed requests
	lastFailure  map[string]time.Time // last failed request of each host
	earlyRetries int                  // requests to a host less than a second after a failed one
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	now, host := time.Now(), r.URL.Hostname()
	o.mu.Lock()
	if last, failed := o.lastFailure[host]; failed && now.Sub(last) < time.Second {
		o.earlyRetries++
	}
	o.mu.Unlock()
	if now.Before(o.from) || !now.Before(o.to) || o.isReachable != nil && o.isReachable(host) {
		return o.web.RoundTrip(r)
	}
	err := o.fail(r)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lastFailure == nil {
		o.lastFailure = map[string]time.Time{}
	}
	o.failures++
	o.lastFailure[host] = time.Now()
	return nil, err
}

// systemError returns what a dialler returns if connect fails with errno.
func systemError(errno syscall.Errno) func(*http.Request) error {
	return func(*http.Request) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
	}
}

// neverAnswer waits until the request is cancelled.
func neverAnswer(r *http.Request) error {
	<-r.Context().Done()
	return context.Cause(r.Context())
}

// failDNS fails as package net does if the name server is down.
func failDNS(r *http.Request) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
		Name: r.URL.Hostname(), Server: "127.0.0.1:53", IsTemporary: true,
		Err: "read udp 127.0.0.1:40000->127.0.0.1:53: read: connection refused"}}
}

// manyHosts returns a web of hosts in different domains, and the URLs of their pages. A page takes
// half a second.
func manyHosts(hosts, pages int) (web *crawltest.Web, seeds []string) {
	sites := make([]crawltest.Site, hosts)
	for i := range sites {
		host := fmt.Sprintf("site%d.test", i)
		sites[i] = crawltest.Site{Host: host, Fallback: crawltest.StaticPage(crawltest.HTML("a page")),
			Latency: crawltest.Latency{Base: time.Second / 2}}
		for page := range pages {
			seeds = append(seeds, fmt.Sprintf("http://%s/%d", host, page))
		}
	}
	return crawltest.New(sites...), seeds
}

// checkVisitedOnce fails the test unless every seed was answered exactly once.
func checkVisitedOnce(t *testing.T, web *crawltest.Web, seeds []string) {
	t.Helper()
	times := map[string]int{}
	for _, x := range web.Log() {
		times[x.URL]++
	}
	missing := 0
	for _, seed := range seeds {
		if times[seed] == 0 {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d pages were lost", missing, len(seeds))
	}
}

// TestNetworkOutage: a crawl of 2,000 pages on 100 hosts has no network for a minute. Whatever the
// outage looks like, no page is given up and no host is charged.
func TestNetworkOutage(t *testing.T) {
	tests := map[string]func(*http.Request) error{
		"network unreachable": systemError(syscall.ENETUNREACH),
		"network down":        systemError(syscall.ENETDOWN),
		"no descriptors":      systemError(syscall.EMFILE),
		"no name server":      failDNS,
		"firewall":            systemError(syscall.EPERM),
		"refused":             systemError(syscall.ECONNREFUSED),
		"no host reachable":   systemError(syscall.EHOSTUNREACH),
		"nothing arrives":     neverAnswer,
	}
	for name, fail := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, seeds := manyHosts(100, 20)
				begin := time.Now()
				network := &outage{web: web, from: begin.Add(10 * time.Second),
					to: begin.Add(70 * time.Second), fail: fail}
				c := newCrawl(t, web, memory.New(memory.Config{}), seeds...)
				c.Fetcher = newFetcher(t, network)
				if err := c.Run(t.Context()); err != nil && !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
					t.Fatal(err)
				}
				st := c.Stats()
				checkVisitedOnce(t, web, seeds)
				if st.GivenUp != 0 || st.Retries != 0 {
					t.Errorf("%d pages were given up, %d retried; want none", st.GivenUp, st.Retries)
				}
				if network.earlyRetries > 0 {
					t.Errorf("%d requests came less than a second after a failed one to the same host",
						network.earlyRetries)
				}
				if network.failures > 3*64 {
					t.Errorf("%d requests failed during the outage", network.failures)
				}
			})
		})
	}
}

// TestDeadHosts: dead hosts are given up, with or without living ones beside them, and the crawl
// ends as if hosts were always to blame.
func TestDeadHosts(t *testing.T) {
	tests := map[string]struct {
		hosts, alive int
		most         time.Duration // the longest that the crawl may take
	}{
		"the only host":    {hosts: 1, most: time.Hour},
		"both hosts":       {hosts: 2, most: time.Hour},
		"all of 50 hosts":  {hosts: 50, most: time.Hour},
		"half of 50 hosts": {hosts: 50, alive: 25, most: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, seeds := manyHosts(tt.hosts, 1)
				begin := time.Now()
				network := &outage{web: web, to: begin.Add(1000 * time.Hour), fail: systemError(syscall.ECONNREFUSED),
					isReachable: func(host string) bool {
						var n int
						fmt.Sscanf(host, "site%d.test", &n)
						return n < tt.alive
					}}
				c := newCrawl(t, web, memory.New(memory.Config{}), seeds...)
				c.Fetcher = newFetcher(t, network)
				err := c.Run(t.Context())
				if !errors.Is(err, frontier.ErrOnlySuspendedLeft) {
					t.Errorf("the crawl ended with %v, want %v", err, frontier.ErrOnlySuspendedLeft)
				}
				if st := c.Stats(); st.Pages != int64(tt.alive) {
					t.Errorf("%d pages, want %d", st.Pages, tt.alive)
				}
				if took := time.Since(begin); took > tt.most {
					t.Errorf("the crawl took %v", took)
				}
				c.Halt()
			})
		})
	}
}

// TestWildcardOfDeadHosts: a domain with endless dead host names does not pause the crawl of good
// hosts.
func TestWildcardOfDeadHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, seeds := manyHosts(20, 50)
		begin := time.Now()
		network := &outage{web: web, to: begin.Add(1000 * time.Hour), fail: neverAnswer,
			isReachable: func(host string) bool { return !strings.HasSuffix(host, ".hostile.test") }}
		good := newCrawl(t, web, memory.New(memory.Config{}), seeds...)
		good.Fetcher = newFetcher(t, network)
		bad := newCrawl(t, web, memory.New(memory.Config{}))
		bad.Fetcher, bad.Limiter = newFetcher(t, network), good.Limiter
		for i := range 1000 {
			addSeeds(t, bad, fmt.Sprintf("http://%d.hostile.test/", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var other sync.WaitGroup
		other.Go(func() { _ = bad.Run(ctx) })
		err := good.Run(t.Context())
		took := time.Since(begin)
		cancel()
		bad.Halt()
		other.Wait()
		if want := 50*1500*time.Millisecond + 2*time.Second; err != nil || took > want {
			t.Errorf("the good crawl took %v and ended with %v, want %v at most", took, err, want)
		}
	})
}

// A refusingFetcher cannot connect to any host until a given time.
type refusingFetcher struct {
	crawler.Fetcher
	until time.Time

	mu       sync.Mutex
	attempts map[string][]time.Time // of each host; guarded by mu
}

func (f *refusingFetcher) Fetch(ctx context.Context, t crawler.Ticket) (*decorum.Response, error) {
	host := t.URL().Origin().Host()
	f.mu.Lock()
	f.attempts[host] = append(f.attempts[host], time.Now())
	f.mu.Unlock()
	if time.Now().Before(f.until) {
		return nil, crawler.NewFetchError(t, systemError(syscall.ECONNREFUSED)(nil))
	}
	return f.Fetcher.Fetch(ctx, t)
}

// TestRefusedHostsRest: a host that refuses connections rests before the next attempt, although
// this machine is found to be at fault.
func TestRefusedHostsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 10 * time.Second
		web, seeds := manyHosts(20, 2)
		c := newCrawl(t, web, memory.New(memory.Config{}), seeds...)
		c.Policy.Delay = delay
		f := &refusingFetcher{Fetcher: c.Fetcher, until: time.Now().Add(time.Minute),
			attempts: map[string][]time.Time{}}
		c.Fetcher = f
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkVisitedOnce(t, web, seeds)
		if c.Stats().LocalFaults == 0 {
			t.Error("no failure was found to be this machine's")
		}
		for host, attempts := range f.attempts {
			for i, at := range attempts[1:] {
				if rest := at.Sub(attempts[i]); rest < delay {
					t.Errorf("%s was connected to %v after an attempt, want %v", host, rest, delay)
				}
			}
		}
	})
}
