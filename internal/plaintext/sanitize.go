package plaintext

import (
	"strings"
	"unicode"
)

// ReplaceControlChars returns s with U+FFFD in place of each control character, which a terminal
// might execute, and of each character that changes the direction of text, which could make one
// name look like another.
func ReplaceControlChars(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// ReplaceNonPrintable returns text with U+FFFD in place of each character that is not printable; it
// also replaces line ends.
func ReplaceNonPrintable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// ShellQuote returns name quoted, if necessary, so that a shell reads it as one word.
func ShellQuote(name string) string {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,:+@%=-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
