package httpfetch_test

import (
	"errors"
	"testing"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/internal/testlisten"
)

// TestProxyOutOfReach: an unreachable proxy does not count as a fault of the host behind it.
func TestProxyOutOfReach(t *testing.T) {
	l := testlisten.Listen(t, "127.0.0.2:0")
	addr := l.Addr().String()
	l.Close()
	_, resolver := newCachingResolver(t, dnsZone{"example.com": alwaysAddrs("127.0.0.3")})
	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		proxy := scheme + "://" + addr
		fetcher := httpfetch.NewWithNetwork(httpfetch.Config{UserAgent: userAgent, Resolver: resolver, Proxy: proxy,
			AllowPrivate: true}, nil, nil)
		for _, u := range []string{"http://example.com/", "https://example.com/"} {
			_, err := fetcher.Fetch(t.Context(), pageTicket(t, u))
			if fault := new(crawler.NetworkOutageError); !errors.As(err, &fault) {
				t.Errorf("%s, %s: %v, want a NetworkFault", scheme, u, err)
			}
		}
	}
}
