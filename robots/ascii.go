package robots

const digits = "0123456789"

func isAlphanumeric(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leadingToken returns what of s is a token; text after it does not belong to
// the name (AGENT-02).
func leadingToken(s string) string {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return s[:i]
		}
	}
	return s
}

func isTokenByte(c byte) bool { return isAlphanumeric(c) || c == '_' || c == '-' }
