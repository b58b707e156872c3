package collyfetch

import (
	"crypto/x509"
	"net/http"
	"net/netip"
)

// NewTransport is for tests that put certificates into it.
func NewTransport(cfg Config) *http.Transport { return newTransport(newNetwork(cfg.withDefaults())) }

// NewWith returns a Fetcher to which those addresses are unfit that unfit has a
// word for, and that trusts roots. What is nil is as it always is.
func NewWith(cfg Config, unfit func(netip.Addr) string, roots *x509.CertPool) *Fetcher {
	cfg = cfg.withDefaults()
	n := newNetwork(cfg)
	if unfit != nil {
		n.unfit = unfit
	}
	n.roots = roots
	return newFetcher(cfg, n)
}

// NotPublic is notPublic.
var NotPublic = notPublic
