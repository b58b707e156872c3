package decorum

import "strings"

// A byteClass is a set of classes of bytes, as bits: where in a canonical URL a byte may appear.
type byteClass uint8

const (
	inPath     byteClass = 1 << iota // appears unescaped in a path
	inSegment                        // inPath, except "/" and ":", which the fast path has to examine
	inQuery                          // appears unescaped in a query
	inHostname                       // appears in a host name, whatever its neighbours
	unreserved                       // is never escaped (RFC 3986 §2.3)
	hexDigit                         // a hex digit of either case
)

// byteClasses maps a byte to the classes it belongs to.
var byteClasses = newByteClasses()

// newByteClasses returns the classes of each byte, by the percent-encode sets of the WHATWG URL
// standard, §1.3. The percent sign has no class, because the bytes after it decide.
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

// hexValue returns the value of c, which must be a hex digit.
func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// appendPercentNormalized appends s, a path segment or a query. Bytes of the class plain and percent
// signs that do not begin an escape stay, escapes get their normal form (RFC 3986 §6.2.2), and all
// other bytes are escaped.
func appendPercentNormalized(b []byte, s string, plain byteClass) []byte {
	for i := 0; i < len(s); {
		run := i // start of a run of plain bytes, which is copied at once
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

// beginsEscape reports whether the percent sign that s begins with starts an escape.
func beginsEscape(s string) bool {
	return len(s) >= len("%41") && inClass(s[1], hexDigit) && inClass(s[2], hexDigit)
}

// appendNormalizedEscape appends the normal form of the escape of c: c itself if it is unreserved.
// An unreserved c stays escaped if it would complete an escape with the stray percent sign before
// it: "%%341" must not become "%41", which is another page.
func appendNormalizedEscape(b []byte, c byte) []byte {
	if !inClass(c, unreserved) || inClass(c, hexDigit) && endsInPartialEscape(b) {
		return appendEscape(b, c)
	}
	return append(b, c)
}

// endsInPartialEscape reports whether b ends in the beginning of an escape: a stray percent sign,
// alone or with one hex digit.
func endsInPartialEscape(b []byte) bool {
	n := len(b)
	return n >= 1 && b[n-1] == '%' || n >= 2 && b[n-2] == '%' && inClass(b[n-1], hexDigit)
}

// appendEscape appends the escape of c, in upper case.
func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(b, '%', digits[c>>4], digits[c&15])
}

// unescapeHost returns the host s with its escapes decoded.
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
