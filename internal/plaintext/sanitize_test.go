package plaintext

import (
	"strings"
	"testing"
)

// Untrusted text cannot control the terminal that shows it.
func TestReplaceControlChars(t *testing.T) {
	if got := ReplaceControlChars("a\u202eb\u2066c\u009bd\u200fe\x1bf\u061cg"); got != strings.Join(
		strings.Split("abcdefg", ""), "\ufffd") {
		t.Errorf("%+q", got)
	}
}
