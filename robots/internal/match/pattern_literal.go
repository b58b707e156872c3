package match

import (
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// A literal is a part of a pattern without wildcards, in the canonical form of paths (see
// decorum.ParseURL): unreserved characters are bare, octets that a URL may not contain are escaped,
// and escapes are in upper case (MATCH-04, MATCH-22, FMT-14).
//
// The characters in optionallyEscaped are always bare in a literal, but match both spellings in a
// path. They are "*" and "$", which a pattern must escape to mean the character (MATCH-25), and those
// that ParseURL escapes in one part of a URL and leaves bare in another.
type literal struct {
	text               string
	hasOptionalEscapes bool // text contains at least one optionallyEscaped octet
}

// optionallyEscaped are the octets that a path may contain bare or escaped.
const optionallyEscaped = "*$'\\^`{|}"

func isOptionallyEscaped(c byte) bool { return strings.IndexByte(optionallyEscaped, c) >= 0 }

// newLiteral returns the literal for a part of a pattern, and the length of the part as PREC-16
// counts it, in octets: in canonical form, but with optionallyEscaped characters as written.
func newLiteral(part string) (l literal, octets int) {
	// Most parts are in canonical form already and need no copy.
	plain := 0
	for plain < len(part) && unescapedBytes[part[plain]] {
		plain++
	}
	if plain == len(part) {
		return literal{text: part}, len(part)
	}
	text, octets := append([]byte(nil), part[:plain]...), plain
	for part = part[plain:]; part != ""; {
		c, size := decodeOctet(part)
		part = part[size:]
		switch escaped := size > 1; {
		case isOptionallyEscaped(c):
			text, l.hasOptionalEscapes = append(text, c), true
			octets += size
		case escaped && !isUnreserved(c), escaped && isHex(c) && endsInPartialEscape(text),
			!escaped && !unescapedBytes[c] && c != '%':
			text = append(text, '%', upperHex[c>>4], upperHex[c&15])
			octets += len("%2F")
		default:
			text = append(text, c)
			octets++
		}
	}
	l.text = string(text)
	return l, octets
}

// decodeOctet returns the first octet of s, unescaped, and the number of bytes that spell it. A
// percent sign that does not begin an escape stands for itself.
func decodeOctet(s string) (c byte, size int) {
	if s[0] == '%' && len(s) >= len("%2F") && isHex(s[1]) && isHex(s[2]) {
		return hexValue(s[1])<<4 | hexValue(s[2]), len("%2F")
	}
	return s[0], 1
}

// endsInPartialEscape reports whether a hex digit appended to text could complete an escape that the
// pattern does not contain: "%%341" is not "%41".
func endsInPartialEscape(text []byte) bool {
	n := len(text)
	return n >= 1 && text[n-1] == '%' || n >= 2 && text[n-2] == '%' && isHex(text[n-1])
}

// matchedPrefixLen returns the index in s at which the literal ends if s begins with it, otherwise -1.
func (l *literal) matchedPrefixLen(s string) int {
	if !l.hasOptionalEscapes {
		if strings.HasPrefix(s, l.text) {
			return len(l.text)
		}
		return -1
	}
	n := 0
	for i := range len(l.text) {
		switch c, rest := l.text[i], s[n:]; {
		case rest != "" && rest[0] == c:
			n++
		case isOptionallyEscaped(c) && strings.HasPrefix(rest, "%") && len(rest) >= len("%2A") &&
			rest[1] == upperHex[c>>4] && rest[2] == upperHex[c&15]:
			n += len("%2A")
		default:
			return -1
		}
	}
	return n
}

// indexEnd returns the index in s at which the first occurrence of the literal ends, -1 if s does not
// contain it.
func (l *literal) indexEnd(s string) int {
	if !l.hasOptionalEscapes {
		if i := strings.Index(s, l.text); i >= 0 {
			return i + len(l.text)
		}
		return -1
	}
	for i := range len(s) {
		if n := l.matchedPrefixLen(s[i:]); n >= 0 {
			return i + n
		}
	}
	return -1
}

// isSuffixOf reports whether s ends with the literal.
func (l *literal) isSuffixOf(s string) bool {
	if !l.hasOptionalEscapes {
		return strings.HasSuffix(s, l.text)
	}
	for i := range len(s) {
		if l.matchedPrefixLen(s[i:]) == len(s)-i {
			return true
		}
	}
	return false
}

// unescapedBytes is the set of octets that a literal always contains bare and that match one spelling
// only. The percent sign is not in it, because the bytes after it decide.
var unescapedBytes = func() (set [256]bool) {
	for c := byte('!'); c <= '~'; c++ {
		set[c] = !isOptionallyEscaped(c) && strings.IndexByte("\"#%<>", c) < 0
	}
	return set
}()

// isUnreserved reports whether c is never escaped (RFC 3986, section 2.3).
func isUnreserved(c byte) bool {
	return syntax.IsAlphanumeric(c) || strings.IndexByte("-._~", c) >= 0
}

func isHex(c byte) bool { return syntax.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func hexValue(c byte) byte {
	if syntax.IsDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

const upperHex = "0123456789ABCDEF"
