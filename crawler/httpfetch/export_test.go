package httpfetch

import (
	"crypto/x509"
	"net/http"
	"net/netip"
)

// NewNetHTTPTransport returns the transport for cfg on net/http.
func NewNetHTTPTransport(cfg Config) http.RoundTripper {
	n := mustNewCrawlDialer(cfg.withDefaults())
	n.keeper = nil
	return newNetHTTPTransport(n, false)
}

// NewWithNetwork returns a Fetcher that uses blockedAddrKind to check addresses and trusts roots.
// Nil arguments stand for the defaults of New.
func NewWithNetwork(cfg Config, blockedAddrKind func(netip.Addr) string, roots *x509.CertPool) *Fetcher {
	cfg = cfg.withDefaults()
	n := mustNewCrawlDialer(cfg)
	if blockedAddrKind != nil {
		n.blockedAddrKind = blockedAddrKind
	}
	n.rootCAs = roots
	return newFetcherWithDialer(cfg, n)
}

// mustNewCrawlDialer is newCrawlDialer for a valid cfg; it panics otherwise.
func mustNewCrawlDialer(cfg Config) *crawlDialer {
	n, err := newCrawlDialer(cfg)
	if err != nil {
		panic(err)
	}
	return n
}

// NonPublicKind exports nonPublicKind for tests.
var NonPublicKind = nonPublicKind
