package syntax

import (
	"net/netip"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// ParseMainMirror reads the value of a Host line: [https://]name[:port] (HOST-06).
// Whatever else is in it makes the line incorrect (HOST-10).
func ParseMainMirror(value string) (string, bool) {
	address, secure := strings.CutPrefix(value, "https://")
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	name, port, given := strings.Cut(address, ":")
	if !isHostname(name) || given && strings.Trim(port, Digits) != "" {
		return "", false
	}
	if given && strings.Trim(port, "0") == "" {
		return "", false // no port, or port 0
	}
	u, err := decorum.ParseURL(scheme + address)
	if err != nil || u.Origin().Host() != strings.ToLower(name) {
		return "", false // a port out of range, broken Punycode, an address in odd notation
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "", false
	}
	if secure {
		return u.Origin().String(), true
	}
	return u.Origin().HostPort(), true
}

// Limits of host names (RFC 1035, section 2.3.4), in octets.
const (
	maxHostnameBytes  = 253
	maxHostLabelBytes = 63
)

// isHostname reports whether name is one of RFC 952, whose labels may begin with
// a digit as well (HOST-09, HOST-14).
func isHostname(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxHostLabelBytes || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if !IsAlphanumeric(label[i]) && label[i] != '-' {
				return false
			}
		}
	}
	return len(name) <= maxHostnameBytes
}
