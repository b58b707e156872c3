package syntax

const Digits = "0123456789"

func IsAlphanumeric(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// LeadingToken returns what of s is a token; text after it does not belong to
// the name (AGENT-02).
func LeadingToken(s string) string {
	for i := range len(s) {
		if !IsTokenByte(s[i]) {
			return s[:i]
		}
	}
	return s
}

func IsTokenByte(c byte) bool { return IsAlphanumeric(c) || c == '_' || c == '-' }
