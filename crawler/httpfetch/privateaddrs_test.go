package httpfetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
	"github.com/decorum-crawler/decorum/politeness"
)

// privateZone has names with addresses that are not public.
var privateZone = dnsZone{
	"loop.test":     alwaysAddrs("127.0.0.1"),
	"loop6.test":    alwaysAddrs("::1"),
	"mapped.test":   alwaysAddrs("::ffff:127.0.0.1"),
	"nat64.test":    alwaysAddrs("64:ff9b::7f00:1"),
	"metadata.test": alwaysAddrs("169.254.169.254"),
	"lan.test":      alwaysAddrs("10.0.0.1", "192.168.0.1"),
	"many.test":     alwaysAddrs("::1", "fd00::1", "127.0.0.1", "0.0.0.0"),
}

// privateHosts are hosts of URLs that lead to non-public addresses, in every form that a URL or a
// name allows. The loopback ones lead to the forbiddenServer.
var privateHosts = []string{
	"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.8.9.10", "2130706433", "0x7f000001", "0x7f.0.0.1",
	"0X7F.1", "0x7f.0x0.0x0.0x1",
	"017700000001", "0177.0.0.1", "0177.1", "127.0.0.01", "%31%32%37.0.0.1", "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1",
	"0", "0x0", "0.0.0.0", "public.test@127.0.0.1",
	"[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]",
	"[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
	"[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
	"169.254.169.254", "2852039166", "0xa9fea9fe", "169.254.43518", "0251.0376.0251.0376",
	"[::ffff:169.254.169.254]", "[fd00:ec2::254]",
	"168.63.129.16", "100.100.100.200", "192.0.0.192",
	"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	"[fe80::1]", "[fd00::1]", "[ff02::1]", "[2001:db8::1]", "[fec0::1]",
	"loop.test", "LOOP.test.", "loop6.test", "mapped.test", "nat64.test", "metadata.test", "lan.test", "many.test",
}

// TestPrivateHosts: no request for a page or a robots.txt is sent to a non-public address, neither
// directly nor through a proxy, which does not even get a connection.
func TestPrivateHosts(t *testing.T) {
	private := newForbiddenServer(t)
	_, resolver := newCachingResolver(t, privateZone)
	proxy, server := newHTTPProxy(t, nil)
	server.Start()
	socks, socksh := newSOCKSProxy(t, "socks5", nil), newSOCKSProxy(t, "socks5h", nil)
	for _, proxyURL := range []string{"", server.URL, socks.URL, socksh.URL} {
		fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Resolver: resolver, Proxy: proxyURL})
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range privateHosts {
			for _, scheme := range []string{"http", "https"} {
				u := fmt.Sprintf("%s://%s:%s/x", scheme, host, private.port)
				for what, ticket := range map[string]crawler.Ticket{"page": pageTicket(t, u),
					"robots.txt": robotsTicket(t, u)} {
					if res, err := fetcher.Fetch(t.Context(), ticket); !errors.Is(err, decorum.Forbidden) {
						t.Errorf("by %q, %s of %s: %v, %v; want Forbidden", proxyURL, what, u, res, err)
					}
				}
			}
		}
	}
	if n := private.connections.Load(); n != 0 {
		t.Errorf("the service on loopback was reached %d times", n)
	}
	for _, p := range []*proxyServer{proxy, socks, socksh} {
		if targets := p.targets(); len(targets) > 0 {
			t.Errorf("a proxy received %q", targets)
		}
	}
}

// TestOtherServices: the crawl does not connect to the port of another service, whether or not
// private addresses are allowed, and does not ask a proxy to do it.
func TestOtherServices(t *testing.T) {
	private := newForbiddenServer(t)
	proxy, server := newHTTPProxy(t, nil)
	server.Start()
	for _, proxyURL := range []string{"", server.URL} {
		fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, AllowPrivate: true, Proxy: proxyURL})
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range []string{"22", "25", "6379"} {
			u := "http://127.0.0.1:" + port + "/x"
			if res, err := fetcher.Fetch(t.Context(), pageTicket(t, u)); !errors.Is(err, decorum.Forbidden) ||
				!strings.Contains(err.Error(), "port "+port) {
				t.Errorf("by %q, %s: %v, %v; want Forbidden for its port", proxyURL, u, res, err)
			}
		}
		if c, err := fetcher.DialNonHTTP(t.Context(), pageTicket(t, "http://127.0.0.1:22/"),
			"127.0.0.1:22"); !errors.Is(err, decorum.Forbidden) {
			t.Errorf("dialled: %v, %v; want Forbidden", c, err)
		}
		// An FTP server may name such an address for data.
		for _, addr := range []string{"127.0.0.1:22", "127.0.0.1:6379"} {
			if c, err := fetcher.DialNonHTTPAddrPort(t.Context(), pageTicket(t, "http://127.0.0.1/"),
				netip.MustParseAddrPort(addr)); !errors.Is(err, decorum.Forbidden) {
				t.Errorf("%s for data: %v, %v; want Forbidden", addr, c, err)
			}
		}
	}
	if targets := proxy.targets(); len(targets) > 0 {
		t.Errorf("a proxy received %q", targets)
	}
	// A connect-to rule for the port allows it.
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, AllowPrivate: true,
		ConnectToRules: []string{"mail.test:25:127.0.0.1:" + private.port}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = fetcher.Fetch(t.Context(), pageTicket(t, "http://mail.test:25/x"))
	if errors.Is(err, decorum.Forbidden) || private.connections.Load() == 0 {
		t.Errorf("a port with a connect_to rule: %v", err)
	}
}

// loopbackTwoIsPublic treats 127.0.0.2 as a public address, so that a test can serve a site on it.
func loopbackTwoIsPublic(a netip.Addr) string {
	if a == netip.MustParseAddr("127.0.0.2") {
		return ""
	}
	return httpfetch.NonPublicKind(a)
}

// serveOn serves site at address, and returns the address with its port.
func serveOn(t *testing.T, address string, site http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(site)
	s.Listener.Close()
	s.Listener = testlisten.Listen(t, address)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// TestRebinding: a name that first resolves to a public address and later to loopback is refused the
// second time, because the checked address is the one that is connected to.
func TestRebinding(t *testing.T) {
	private := newForbiddenServer(t)
	serveOn(t, "127.0.0.2:"+private.port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	flips := func(n int) []string { return [][]string{{"127.0.0.2"}, {"127.0.0.1"}}[min(n, 1)] }
	mixed := alwaysAddrs("127.0.0.1", "127.0.0.2", "169.254.169.254")
	u := func(host string) string { return "http://" + host + ":" + private.port + "/" }
	for _, scheme := range []string{"", "socks5"} {
		_, resolver := newCachingResolver(t, dnsZone{"flips.test": flips, "mixed.test": mixed})
		cfg := httpfetch.Config{UserAgent: userAgent, Resolver: resolver, DNSTTL: -1}
		if scheme != "" {
			cfg.Proxy = newSOCKSProxy(t, scheme, nil).URL
		}
		fetcher := httpfetch.NewWithNetwork(cfg, loopbackTwoIsPublic, nil)
		if _, err := fetcher.Fetch(t.Context(), pageTicket(t, u("flips.test"))); err != nil {
			t.Errorf("%s: the first time: %v", scheme, err)
		}
		for range 3 {
			if _, err := fetcher.Fetch(t.Context(),
				pageTicket(t, u("flips.test"))); !errors.Is(err, decorum.Forbidden) {
				t.Errorf("%s: afterwards: %v, want Forbidden", scheme, err)
			}
		}
		res, err := fetcher.Fetch(t.Context(), pageTicket(t, u("mixed.test")))
		switch {
		case scheme == "" && (err != nil || res.Addr.Addr().String() != "127.0.0.2"):
			t.Errorf("of several addresses: %v, %v; want the public one", res, err)
		case scheme != "" && !errors.Is(err, decorum.Forbidden):
			t.Errorf("of several addresses, by a proxy: %v, want Forbidden", err)
		}
	}
	if n := private.connections.Load(); n != 0 {
		t.Errorf("the service on loopback was reached %d times", n)
	}
}

// TestCrawlNeverReachesPrivateAddresses: a site leads the crawl to non-public addresses by redirects,
// links, sitemaps and a redirected robots.txt. The crawl refuses all of them and logs each.
func TestCrawlNeverReachesPrivateAddresses(t *testing.T) {
	private := newForbiddenServer(t)
	inside := []string{"http://127.0.0.1:" + private.port, "http://loop.test:" + private.port,
		"http://[::1]:" + private.port,
		"http://169.254.169.254", "http://metadata.test", "http://[fd00:ec2::254]",
		"http://2852039166", "http://10.0.0.1"}
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "moved.test") {
			http.Redirect(w, r, "http://127.0.0.3:"+private.port+"/robots.txt", http.StatusMovedPermanently)
		}
		for _, in := range inside {
			fmt.Fprintf(w, "Sitemap: %s/sitemap.xml\n", in)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for i, in := range inside {
			fmt.Fprintf(w, "<a href='/to/%d'>x</a><a href='%s/latest/meta-data/'>y</a>", i, in)
		}
	})
	for i, in := range inside {
		mux.Handle(fmt.Sprintf("/to/%d", i), http.RedirectHandler(in+"/moved", http.StatusFound))
	}
	mux.Handle("/to/file", http.RedirectHandler("file:///etc/passwd", http.StatusFound))
	site := serveOn(t, "127.0.0.2:0", mux)
	port := site[strings.LastIndexByte(site, ':'):]

	z := dnsZone{"public.test": alwaysAddrs("127.0.0.2"), "moved.test": alwaysAddrs("127.0.0.2")}
	for name, addrs := range privateZone {
		z[name] = addrs
	}
	_, resolver := newCachingResolver(t, z)
	fetcher := httpfetch.NewWithNetwork(httpfetch.Config{UserAgent: userAgent, Resolver: resolver}, loopbackTwoIsPublic,
		nil)
	crawl := newCrawl(t, fetcher, "http://public.test"+port+"/", "http://public.test"+port+"/to/file",
		"http://moved.test"+port+"/")
	crawl.Policy.Delay, crawl.Policy.AdaptiveFactor = politeness.NoDelay, -1
	log := &originLogWatcher{done: crawl.Halt}
	for _, origin := range append(inside, "http://moved.test"+port) {
		u, err := decorum.ParseURL(origin)
		if err != nil {
			t.Fatal(err)
		}
		log.want = append(log.want, "origin="+strings.TrimSuffix(u.String(), "/")+" ")
	}
	crawl.Log = slog.New(slog.NewTextHandler(log, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := crawl.Run(ctx); !errors.Is(err, crawler.ErrHalted) {
		t.Errorf("the crawl ended with %v before it logged %q:\n%s", err, log.want, log)
	}
	if n := private.connections.Load(); n != 0 {
		t.Errorf("the service on loopback was reached %d times", n)
	}
}

// An originLogWatcher reads the log and calls done once the log reports each wanted origin as refused
// for its address.
type originLogWatcher struct {
	bytes.Buffer
	want []string
	done func()
}

// Write implements io.Writer. slog calls it for one line at a time.
func (a *originLogWatcher) Write(line []byte) (int, error) {
	before := len(a.want)
	a.want = slices.DeleteFunc(a.want, func(origin string) bool {
		return bytes.Contains(line, []byte(origin)) && bytes.Contains(line, []byte("forbidden address"))
	})
	if before > 0 && len(a.want) == 0 {
		a.done()
	}
	return a.Buffer.Write(line)
}
