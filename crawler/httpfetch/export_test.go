package httpfetch

import (
	"crypto/x509"
	"net/http"
	"net/netip"
)

// NewTransport is for tests that put certificates into it.
func NewTransport(cfg Config) *http.Transport {
	return newHTTPTransport(mustNewCrawlDialer(cfg.withDefaults()))
}

// NewWithNetwork returns a Fetcher to which those addresses are unfit that unfit has a
// word for, and that trusts roots. What is nil is as it always is.
func NewWithNetwork(cfg Config, blockedAddrKind func(netip.Addr) string, roots *x509.CertPool) *Fetcher {
	cfg = cfg.withDefaults()
	n := mustNewCrawlDialer(cfg)
	if blockedAddrKind != nil {
		n.blockedAddrKind = blockedAddrKind
	}
	n.rootCAs = roots
	return newFetcherWithDialer(cfg, n)
}

// mustNewCrawlDialer is newCrawlDialer for a cfg whose proxy and rules are well-formed.
func mustNewCrawlDialer(cfg Config) *crawlDialer {
	n, err := newCrawlDialer(cfg)
	if err != nil {
		panic(err)
	}
	return n
}

// NonPublicKind is nonPublicKind.
var NonPublicKind = nonPublicKind
