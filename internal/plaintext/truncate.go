package plaintext

import (
	"regexp"
	"strings"
)

// maxQuotedBytes is how many bytes of a value an error repeats.
const maxQuotedBytes = 100

// quotedValuePattern matches a value in an error, quoted as by %q or by the regexp package. A value
// in backquotes extends to the last backquote, because a pattern may contain backquotes.
var quotedValuePattern = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|(?s:`.*`)")

// HideQuoted returns problem with "…" in place of each quoted value.
func HideQuoted(problem string) string {
	return ReplaceControlChars(quotedValuePattern.ReplaceAllLiteralString(problem, `"…"`))
}

// TruncateQuotedValues returns text with each quoted value cut to maxQuotedBytes bytes.
func TruncateQuotedValues(text string) string {
	return quotedValuePattern.ReplaceAllStringFunc(text, func(value string) string {
		if len(value) <= maxQuotedBytes+2 {
			return value
		}
		return Truncate(value) + value[len(value)-1:]
	})
}

// Truncate returns the first maxQuotedBytes bytes of text, with "…" if text is longer.
func Truncate(text string) string {
	if len(text) <= maxQuotedBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuotedBytes], "") + "…"
}

// maxURLBytes is how many bytes of a URL TruncateURL returns.
const maxURLBytes = 300

// TruncateURL returns the first 300 bytes of u.
func TruncateURL(u string) string { return u[:min(len(u), maxURLBytes)] }
