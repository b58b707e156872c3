package httpfetch_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/crawler/botauth/authtest"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// newSigner returns a Signer and its public key.
func newSigner(t *testing.T) (signer *botauth.Signer, publicKey string) {
	t.Helper()
	k, err := botauth.GenerateKey()
	must(t, err)
	signer, err = botauth.NewSigner(k, "https://bot.test", time.Minute)
	must(t, err)
	var set botauth.KeySet
	must(t, json.Unmarshal(botauth.MarshalDirectory(k), &set))
	return signer, set.Keys[0].X
}

// TestProxies: http and https requests pass through each kind of proxy, and their signatures arrive
// unchanged. A socks5 proxy gets the host's address, every other proxy its name.
func TestProxies(t *testing.T) {
	signer, publicKey := newSigner(t)
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := authtest.VerifyRequest(r, publicKey, time.Now()); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the site received the proxy's password")
		}
		w.Write([]byte("from " + r.Host))
	})
	plain := serveOn(t, "127.0.0.2:0", site)
	secure := httptest.NewUnstartedServer(site)
	secure.Listener.Close()
	secure.Listener = testlisten.Listen(t, "127.0.0.2:0")
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	names := map[string]string{"example.com": "127.0.0.2"} // the name in httptest's certificate
	_, resolver := newCachingResolver(t, dnsZone{"example.com": alwaysAddrs("127.0.0.2")})
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())

	inClear, s := newHTTPProxy(t, names)
	s.Start()
	inClear.URL = strings.Replace(s.URL, "//", "//user:pass@", 1)
	encrypted, s := newHTTPProxy(t, names)
	s.EnableHTTP2 = true // offered, but the crawl speaks HTTP/1.1 to proxies
	s.StartTLS()
	encrypted.URL = s.URL
	for name, p := range map[string]*proxyServer{"http": inClear, "https": encrypted,
		"socks5": newSOCKSProxy(t, "socks5", names), "socks5h": newSOCKSProxy(t, "socks5h", names)} {
		cfg := httpfetch.Config{UserAgent: userAgent, Resolver: resolver, Proxy: p.URL, Signer: signer}
		fetcher := httpfetch.NewWithNetwork(cfg, loopbackTwoIsPublic, roots)
		for _, u := range []string{"http://example.com:" + port(plain), "https://example.com:" +
			port(secure.Listener.Addr().String())} {
			for range 2 { // the second time over the kept-open connection
				res, err := fetcher.Fetch(t.Context(), pageTicket(t, u+"/"))
				if err != nil || !strings.HasPrefix(string(res.Body), "from example.com") {
					t.Fatalf("%s: %s: %v, %v", name, u, res, err)
				}
				if res.Addr.Addr().String() != "127.0.0.2" {
					t.Errorf("%s: %s: the answer is from %v, want the site's address", name, u, res.Addr)
				}
			}
		}
		want := "example.com"
		if name == "socks5" {
			want = "127.0.0.2"
		}
		for _, target := range p.targets() {
			if host, _, _ := net.SplitHostPort(target); host != want {
				t.Errorf("%s: the proxy was sent %s, want %s", name, target, want)
			}
		}
		if name == "http" && slices.ContainsFunc(p.authHeaders, func(a string) bool {
			return a != "Basic dXNlcjpwYXNz"
		}) {
			t.Errorf("the proxy was shown %q", p.authHeaders)
		}
	}
}

// TestProxyFailures: the error of a failing proxy does not contain its password, and the crawl does
// not bypass the proxy.
func TestProxyFailures(t *testing.T) {
	gone := testlisten.Listen(t, "127.0.0.1:0")
	gone.Close()
	site := serveOn(t, "127.0.0.2:0", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the site got a request")
	}))
	_, resolver := newCachingResolver(t, dnsZone{})
	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		proxyURL := scheme + "://user:geheim@" + gone.Addr().String()
		fetcher := httpfetch.NewWithNetwork(httpfetch.Config{UserAgent: userAgent, Resolver: resolver, Proxy: proxyURL},
			loopbackTwoIsPublic, nil)
		_, err := fetcher.Fetch(t.Context(), pageTicket(t, "http://"+site+"/"))
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", scheme, err)
		}
		_, err = fetcher.Fetch(t.Context(), pageTicket(t, "http://unknown.test/"))
		if err == nil || !strings.Contains(err.Error(), "cannot be checked here") {
			t.Errorf("%s, a host without an address: %v", scheme, err)
		}
	}
}

// TestProxyThatWantsAnotherPassword: a 407 of the proxy is not taken for a response of the site,
// whose robots.txt would seem to be missing and whose pages would seem to be gone.
func TestProxyThatWantsAnotherPassword(t *testing.T) {
	proxy := strings.TrimSuffix(startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProxyAuthRequired)
	}), "/page")
	for _, u := range []string{"http://a.test/", "https://a.test/"} {
		if res, err := fetchPage(t, httpfetch.Config{Proxy: proxy}, u); !errors.Is(err, decorum.Unreachable) {
			t.Errorf("%s: %v, %v; want Unreachable", u, res, err)
		}
	}
}

// TestMalformedConnectionSettings: a malformed proxy or rule is refused before anything is sent, and
// the error does not repeat the password.
func TestMalformedConnectionSettings(t *testing.T) {
	for _, cfg := range []httpfetch.Config{{Proxy: "ftp://user:geheim@p.test"},
		{ConnectToRules: []string{"::127.0.0.1:8080", "a.test:80"}}} {
		cfg.UserAgent = userAgent
		if _, err := httpfetch.New(cfg); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("the proxy %q and the rules %q: %v", cfg.Proxy, cfg.ConnectToRules, err)
		}
	}
}

// TestLookups: concurrent visits to a host share one lookup, whose result is used until it expires.
// The host is looked up again if none of its addresses accepts a connection.
func TestLookups(t *testing.T) {
	address := serveOn(t, "127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	_, port, _ := net.SplitHostPort(address)
	moves := func(n int) []string { return [][]string{{"127.0.0.9"}, {"127.0.0.1"}}[min(n, 1)] }
	server, resolver := newCachingResolver(t, dnsZone{"site.test": alwaysAddrs("127.0.0.1"), "moves.test": moves})
	fetcher, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Resolver: resolver, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(host string) error {
		_, err := fetcher.Fetch(t.Context(), pageTicket(t, "http://"+host+":"+port+"/"))
		return err
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := fetch("site.test"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := server.questionCount("site.test"); n != 1 {
		t.Errorf("the host was looked up %d times, want once", n)
	}
	for range 3 {
		if err, want := fetch("nowhere.test"), new(net.DNSError); !errors.As(err, &want) || !want.IsNotFound {
			t.Errorf("a host that does not exist: %v", err)
		}
	}
	if err := fetch("moves.test"); err == nil {
		t.Error("nothing is at the first address")
	}
	if err := fetch("moves.test"); err != nil {
		t.Errorf("a host that has moved: %v", err)
	}
}

// TestSilentProxy: a visit through a proxy that accepts and stays silent ends at the usual time limit,
// and its connection is closed. With an http proxy the close takes the minute that net/http allows
// for a CONNECT.
func TestSilentProxy(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			l := testlisten.Listen(t, "127.0.0.1:0")
			closed := make(chan error, 1)
			go func() {
				c, err := l.Accept()
				if err == nil {
					_, err = io.Copy(io.Discard, c)
					c.Close()
				}
				closed <- err
			}()
			cfg := withShortTimeouts(hostileConfig)
			cfg.Proxy = scheme + "://" + l.Addr().String()
			_, err := fetchPage(t, cfg, "https://127.0.0.9/")
			if err == nil || !strings.Contains(err.Error(), "no answer within 1s") {
				t.Errorf("got %v, want that no answer came", err)
			}
			if scheme == "http" {
				return
			}
			if err := <-closed; err != nil {
				t.Errorf("the connection: %v", err)
			}
		})
	}
}
