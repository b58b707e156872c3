// Package registrable finds the registered domain of a host. It starts no goroutine and has no
// lock.
package registrable

import "golang.org/x/net/publicsuffix"

// Domain returns the registered domain of host by the public suffix list: example.co.uk for
// www.example.co.uk. The owner of a domain can create any number of names below it. Private
// suffixes count: each user of github.io has a separate domain, because each has a separate site.
// The domain of an IP address, or of a public suffix, is itself.
func Domain(host string) string {
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}
