// Package plaintext makes texts of others fit for a terminal, a log or an error, and reads
// lines of text.
package plaintext

import (
	"strings"
	"unicode"
)

// ReplaceControlChars returns s without what a terminal would act on: files are written by
// anybody. That is control characters, and those that change the direction of the text
// around them, by which one name looks like another.
func ReplaceControlChars(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// ReplaceNonPrintable leaves out of a text what would play with a terminal.
func ReplaceNonPrintable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
