package decorum

import "strings"

// A byteClass is a set of the bytes that may stand at some place of a canonical
// URL; see classes.
type byteClass uint8

const (
	inPath     byteClass = 1 << iota // stands in a path as it is
	inSegment                        // inPath, and no sign the fast path must look at
	inQuery                          // stands in a query as it is
	inHostname                       // stands in a host name, whatever its neighbours
	unreserved                       // is never escaped (RFC 3986 §2.3)
	hexDigit                         // of either case
)

// byteClasses maps a byte to the classes it belongs to.
var byteClasses = newByteClasses()

// newByteClasses follows the percent-encode sets of the WHATWG URL standard,
// §1.3. The percent sign is in no class: what stands behind it decides.
func newByteClasses() (t [256]byteClass) {
	add := func(from, to byte, k byteClass) {
		for c := int(from); c <= int(to); c++ {
			t[c] |= k
		}
	}
	remove := func(s string, k byteClass) {
		for i := range len(s) {
			t[s[i]] &^= k
		}
	}
	add('!', '~', inPath|inSegment|inQuery)
	remove("\"#<>%", inPath|inSegment|inQuery)
	remove("?^`{}\\", inPath|inSegment)
	remove("/:", inSegment)
	remove("'", inQuery)
	add('0', '9', inHostname|unreserved|hexDigit)
	add('a', 'z', inHostname|unreserved)
	add('A', 'Z', unreserved)
	add('a', 'f', hexDigit)
	add('A', 'F', hexDigit)
	for _, c := range []byte("-._~") {
		t[c] |= unreserved
	}
	t['_'] |= inHostname
	return t
}

// inClass reports whether c belongs to k.
func inClass(c byte, k byteClass) bool { return byteClasses[c]&k != 0 }

// hexValue returns the value of the hex digit c.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// appendPercentNormalized appends s, a path segment or a query: what belongs to plain as
// it stands, escapes in normal form (RFC 3986 §6.2.2), a percent sign that
// begins no escape as it stands, all else escaped.
func appendPercentNormalized(b []byte, s string, plain byteClass) []byte {
	for i := 0; i < len(s); {
		run := i
		for i < len(s) && inClass(s[i], plain) {
			i++
		}
		b = append(b, s[run:i]...)
		switch {
		case i == len(s):
		case s[i] != '%':
			b = appendEscape(b, s[i])
			i++
		case beginsEscape(s[i:]):
			b = appendNormalizedEscape(b, hexValue(s[i+1])<<4|hexValue(s[i+2]))
			i += len("%41")
		default:
			b = append(b, '%')
			i++
		}
	}
	return b
}

// beginsEscape reports whether s, which begins with a percent sign, begins
// with an escape.
func beginsEscape(s string) bool {
	return len(s) >= len("%41") && inClass(s[1], hexDigit) && inClass(s[2], hexDigit)
}

// appendNormalizedEscape appends the normal form of the escape of c. An unreserved c
// needs none, unless bare it would make an escape of the stray percent sign
// before it: "%%341" must not become "%41", which is another page.
func appendNormalizedEscape(b []byte, c byte) []byte {
	if !inClass(c, unreserved) || inClass(c, hexDigit) && endsInPartialEscape(b) {
		return appendEscape(b, c)
	}
	return append(b, c)
}

// endsInPartialEscape reports whether b ends in the beginning of an escape: a stray
// percent sign, or one and a hex digit.
func endsInPartialEscape(b []byte) bool {
	n := len(b)
	return n >= 1 && b[n-1] == '%' || n >= 2 && b[n-2] == '%' && inClass(b[n-1], hexDigit)
}

// appendEscape appends the escape of c.
func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(b, '%', digits[c>>4], digits[c&15])
}

// unescapeHost returns s, a host, with its escapes decoded.
func unescapeHost(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && beginsEscape(s[i:]) {
			c = hexValue(s[i+1])<<4 | hexValue(s[i+2])
			i += len("41")
		}
		b = append(b, c)
	}
	return string(b)
}
