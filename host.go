package decorum

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxHostBytes is the maximum length of a host, in octets: 253 for a DNS name (RFC 1035 §2.3.4) and
// one for the final dot.
const maxHostBytes = 254

// idnaProfile is Unicode ToASCII (UTS 46) with the parameters of the WHATWG URL standard: beStrict is
// false.
var idnaProfile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.CheckHyphens(false),
	idna.StrictDomainName(false),
	idna.BidiRule(),
)

// appendHost appends the canonical form of host, the part of an authority between user information
// and port. It is the host parser of the WHATWG URL standard.
func appendHost(b []byte, host string) (_ []byte, err error) {
	if strings.HasPrefix(host, "[") {
		return appendIPv6(b, host)
	}
	name := unescapeHost(host)
	// International names are mapped to lower case ASCII first.
	if !isASCIIWithoutPunycode(name) {
		b, ok := appendIDNHostFast(b, name)
		if ok {
			return b, nil
		}
		if name, err = toASCII(name); err != nil {
			return b, err
		}
	}
	// The mapping can produce an empty name, a forbidden character or an IPv4 address.
	switch {
	case name == "":
		return b, errNoHost
	case strings.ContainsFunc(name, isForbiddenHostRune):
		return b, errForbiddenHostChar
	case endsInNumber(name):
		return appendIPv4(b, name)
	case len(name) > maxHostBytes:
		return b, errLongHost
	}
	return appendLower(b, name), nil
}

// toASCII returns name, which isASCIIWithoutPunycode rejects, in Punycode. It rejects a name that is
// too long before it encodes it, because Punycode takes quadratic time.
func toASCII(name string) (string, error) {
	switch {
	case len(name) > maxHostBytes*utf8.UTFMax:
		return "", errLongHost
	case hasEmptyPunycode(name):
		return "", errIDNA
	}
	mapped, err := idnaProfile.ToASCII(name)
	switch {
	case err != nil:
		return "", errIDNA
	case strings.EqualFold(mapped, name):
		return mapped, nil // name was Punycode already
	}
	// The idna package checks for right-to-left letters before it maps, and therefore accepts an
	// alef sign between Latin letters. The second pass finds the letter.
	if again, err := idnaProfile.ToASCII(mapped); err != nil || again != mapped {
		return "", errIDNA
	}
	return mapped, nil
}

// hasEmptyPunycode reports whether a label of name is "xn--" alone. UTS 46 rejects it; the idna
// package reads it as an empty label.
func hasEmptyPunycode(name string) bool {
	isEmpty := func(label string) bool { return strings.EqualFold(label, "xn--") }
	return slices.ContainsFunc(strings.Split(name, "."), isEmpty)
}

// isASCIIWithoutPunycode reports whether name is ASCII and has no Punycode label. The mapping of
// UTS 46 changes only the case of such a name.
func isASCIIWithoutPunycode(name string) bool {
	label := 0 // start of the current label
	for i := range len(name) {
		switch c := name[i]; {
		case c >= utf8.RuneSelf:
			return false
		case c == '.':
			label = i + 1
		case i == label+3 && strings.EqualFold(name[label:i+1], "xn--"):
			return false
		}
	}
	return true
}

// isForbiddenHostRune reports whether r is a forbidden domain code point.
func isForbiddenHostRune(r rune) bool {
	return r <= ' ' || r >= 0x7F || strings.ContainsRune("#%/:<>?@[\\]^|", r)
}

// appendLower appends s with its ASCII letters in lower case.
func appendLower(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// endsInNumber reports whether the last label of host is a number, so that host must be an IPv4
// address.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return false
	}
	_, ok := parseIPv4Number(last)
	return ok || strings.Trim(last, "0123456789") == "" // 08 is invalid octal, and not a name either
}

// appendIPv4 appends the IPv4 address host in four decimal numbers. host consists of one to four
// numbers; the last one fills the remaining bytes of the address.
func appendIPv4(b []byte, host string) ([]byte, error) {
	var addr uint64
	rest := strings.TrimSuffix(host, ".")
	for remaining := 4; remaining > 0; remaining-- {
		number, after, more := strings.Cut(rest, ".")
		n, ok := parseIPv4Number(number)
		switch {
		case !ok || more && n > 255:
			return b, errIPv4
		case more:
			addr, rest = addr<<8|n, after
		case n >= 1<<(8*remaining):
			return b, errIPv4
		default:
			addr = addr<<(8*remaining) | n
			ip := netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)})
			return ip.AppendTo(b), nil
		}
	}
	return b, errIPv4
}

// parseIPv4Number returns the value of s: octal after 0, hexadecimal after 0x, otherwise decimal. It
// returns 1<<32 for every number of more than 32 bits.
func parseIPv4Number(s string) (n uint64, ok bool) {
	base := uint64(10)
	switch {
	case s == "":
		return 0, false
	case len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x':
		s, base = s[2:], 16
	case len(s) >= 2 && s[0] == '0':
		s, base = s[1:], 8
	}
	for i := range len(s) {
		if !inClass(s[i], hexDigit) || uint64(hexValue(s[i])) >= base {
			return 0, false
		}
		n = min(n*base+uint64(hexValue(s[i])), 1<<32)
	}
	return n, true
}

// appendIPv6 appends host, an IPv6 address in brackets, compressed and in hex digits only.
func appendIPv6(b []byte, host string) ([]byte, error) {
	inside, closed := strings.CutSuffix(host[1:], "]")
	ip, err := netip.ParseAddr(inside)
	if !closed || err != nil || !ip.Is6() || ip.Zone() != "" {
		return b, errIPv6
	}
	b = append(b, '[')
	if a := ip.As16(); ip.Is4In6() { // netip would write the last four bytes as decimal numbers
		b = append(b, "::ffff:"...)
		b = strconv.AppendUint(b, uint64(a[12])<<8|uint64(a[13]), 16)
		b = append(b, ':')
		b = strconv.AppendUint(b, uint64(a[14])<<8|uint64(a[15]), 16)
	} else {
		b = ip.AppendTo(b)
	}
	return append(b, ']'), nil
}

// appendNonDefaultPort appends a colon and port, unless port is empty or the scheme's default.
func appendNonDefaultPort(b []byte, port, scheme string) ([]byte, error) {
	if port == "" {
		return b, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return b, errPort
	case scheme == "http" && n == 80, scheme == "https" && n == 443, scheme == "ftp" && n == 21:
		return b, nil
	}
	return strconv.AppendUint(append(b, ':'), n, 10), nil
}
