package collyfetch

import (
	"crypto/x509"
	"net/netip"
)

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
