package plaintext

import (
	"regexp"
	"strings"
)

// maxQuotedBytes is how many bytes of a value an error repeats.
const maxQuotedBytes = 100

// quotedValuePattern matches a value in an error, as %q or regexp writes it, up to the last
// quotation mark, since a pattern may contain some.
var quotedValuePattern = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|(?s:`.*`)")

// HideQuoted returns a problem with "…" for each of its values.
func HideQuoted(problem string) string {
	return ReplaceControlChars(quotedValuePattern.ReplaceAllLiteralString(problem, `"…"`))
}

// TruncateQuotedValues returns a text with no more than maxQuotedBytes bytes of each value in it.
func TruncateQuotedValues(text string) string {
	return quotedValuePattern.ReplaceAllStringFunc(text, func(value string) string {
		if len(value) <= maxQuotedBytes+2 {
			return value
		}
		return Truncate(value) + value[len(value)-1:]
	})
}

// Truncate returns the first maxQuotedBytes bytes of a text, and "…" if it is longer.
func Truncate(text string) string {
	if len(text) <= maxQuotedBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuotedBytes], "") + "…"
}

// maxURLBytes is how many bytes of a URL TruncateURL returns.
const maxURLBytes = 300

// TruncateURL returns the first 300 bytes of a URL.
func TruncateURL(u string) string { return u[:min(len(u), maxURLBytes)] }
