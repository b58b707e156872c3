package decorum

import "strings"

// A class is a set of the bytes that may stand at some place of a canonical
// URL; see classes.
type class uint8

const (
	inPath     class = 1 << iota // stands in a path as it is
	inSegment                    // inPath, and no sign the fast path must look at
	inQuery                      // stands in a query as it is
	inName                       // stands in a host name, whatever its neighbours
	unreserved                   // is never escaped (RFC 3986 §2.3)
	hexDigit                     // of either case
)

// classes maps a byte to the classes it belongs to.
var classes = compileClasses()

// compileClasses follows the percent-encode sets of the WHATWG URL standard,
// §1.3. The percent sign is in no class: what stands behind it decides.
func compileClasses() (t [256]class) {
	mark := func(from, to byte, k class) {
		for c := int(from); c <= int(to); c++ {
			t[c] |= k
		}
	}
	unmark := func(s string, k class) {
		for i := range len(s) {
			t[s[i]] &^= k
		}
	}
	mark('!', '~', inPath|inSegment|inQuery)
	unmark("\"#<>%", inPath|inSegment|inQuery)
	unmark("?^`{}\\", inPath|inSegment)
	unmark("/:", inSegment)
	unmark("'", inQuery)
	mark('0', '9', inName|unreserved|hexDigit)
	mark('a', 'z', inName|unreserved)
	mark('A', 'Z', unreserved)
	mark('a', 'f', hexDigit)
	mark('A', 'F', hexDigit)
	for _, c := range []byte("-._~") {
		t[c] |= unreserved
	}
	t['_'] |= inName
	return t
}

// is reports whether c belongs to k.
func is(c byte, k class) bool { return classes[c]&k != 0 }

// unhex returns the value of the hex digit c.
func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// appendNormal appends s, a path segment or a query: what belongs to plain as
// it stands, escapes in normal form (RFC 3986 §6.2.2), a percent sign that
// begins no escape as it stands, all else escaped.
func appendNormal(b []byte, s string, plain class) []byte {
	for i := 0; i < len(s); {
		run := i
		for i < len(s) && is(s[i], plain) {
			i++
		}
		b = append(b, s[run:i]...)
		switch {
		case i == len(s):
		case s[i] != '%':
			b = appendEscape(b, s[i])
			i++
		case beginsEscape(s[i:]):
			b = appendDecoded(b, unhex(s[i+1])<<4|unhex(s[i+2]))
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
	return len(s) >= len("%41") && is(s[1], hexDigit) && is(s[2], hexDigit)
}

// appendDecoded appends the normal form of the escape of c. An unreserved c
// needs none, unless bare it would make an escape of the stray percent sign
// before it: "%%341" must not become "%41", which is another page.
func appendDecoded(b []byte, c byte) []byte {
	if !is(c, unreserved) || is(c, hexDigit) && endsOpen(b) {
		return appendEscape(b, c)
	}
	return append(b, c)
}

// endsOpen reports whether b ends in the beginning of an escape: a stray
// percent sign, or one and a hex digit.
func endsOpen(b []byte) bool {
	n := len(b)
	return n >= 1 && b[n-1] == '%' || n >= 2 && b[n-2] == '%' && is(b[n-1], hexDigit)
}

// appendEscape appends the escape of c.
func appendEscape(b []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(b, '%', digits[c>>4], digits[c&15])
}

// unescape returns s, a host, with its escapes decoded.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && beginsEscape(s[i:]) {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += len("41")
		}
		b = append(b, c)
	}
	return string(b)
}
