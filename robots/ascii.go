package robots

import "strings"

// bare tells the octets that stand in a literal as they are. The percent sign
// is none of them: what follows it decides.
var bare = func() (set [256]bool) {
	for c := byte('!'); c <= '~'; c++ {
		set[c] = !isMark(c) && strings.IndexByte("\"#%<>", c) < 0
	}
	return set
}()

// unreserved reports whether c is never escaped (RFC 3986, section 2.3).
func unreserved(c byte) bool {
	return alphanumeric(c) || strings.IndexByte("-._~", c) >= 0
}

const (
	digits   = "0123456789"
	upperHex = digits + "ABCDEF"
)

func alphanumeric(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
