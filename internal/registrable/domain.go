// Package registrable finds the domain below which a host's name was registered.
package registrable

import "golang.org/x/net/publicsuffix"

// Domain returns the registered domain of a host by the public suffix list:
// example.co.uk for www.example.co.uk. The owner of a domain can have any number of names
// below it. Private suffixes count: each user of github.io is a separate domain, since
// each has a site. The domain of an IP address, or of a public suffix, is itself.
func Domain(host string) string {
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}
