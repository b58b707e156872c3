package match

import (
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

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
