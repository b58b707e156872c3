package match

import (
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// A literal is a part of a pattern without a wildcard, in the form that paths
// have (see decorum.ParseURL): unreserved characters are bare, octets that may
// not stand in a URL are escaped, escapes are in upper case (MATCH-04,
// MATCH-22, FMT-14).
//
// Only marks are always bare, and a path may spell them either way. These are
// "*" and "$", which a pattern must escape to mean the character (MATCH-25),
// and those that are bare or escaped in a URL depending on where they stand.
type literal struct {
	text               string
	hasOptionalEscapes bool // text has at least one
}

// optionallyEscaped are the octets that a path may have bare or escaped.
const optionallyEscaped = "*$'\\^`{|}"

func isOptionallyEscaped(c byte) bool { return strings.IndexByte(optionallyEscaped, c) >= 0 }

// newLiteral makes a literal of a part of a pattern. It also returns how many
// octets the part has as PREC-16 counts: with reserved characters as written.
func newLiteral(part string) (l literal, octets int) {
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
		case escaped && !isUnreserved(c), escaped && isHex(c) && endsInPartialEscape(text), !escaped && !unescapedBytes[c] && c != '%':
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

// decodeOctet returns the first octet of s, unescaped, and how much of s spells it.
// A percent sign that begins no escape stands for itself.
func decodeOctet(s string) (c byte, size int) {
	if s[0] == '%' && len(s) >= len("%2F") && isHex(s[1]) && isHex(s[2]) {
		return hexValue(s[1])<<4 | hexValue(s[2]), len("%2F")
	}
	return s[0], 1
}

// endsInPartialEscape reports whether a hex digit after text could complete an escape
// that nobody wrote: "%%341" is not "%41".
func endsInPartialEscape(text []byte) bool {
	n := len(text)
	return n >= 1 && text[n-1] == '%' || n >= 2 && text[n-2] == '%' && isHex(text[n-1])
}

// matchedPrefixLen returns where the literal ends in s if s begins with it, and -1 if not.
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

// indexEnd returns where the literal first ends in s, and -1 if s does not hold it.
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

// unescapedBytes tells the octets that stand in a literal as they are. The percent sign
// is none of them: what follows it decides.
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
