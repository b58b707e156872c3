package extract

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// titleText returns the text of a title element: references decoded, blanks
// folded, cut at the end of a rune.
func titleText(raw []byte) string {
	const enough = 16 * maxTitleBytes // blanks and references shrink
	raw = raw[:min(len(raw), enough)]
	text := strings.ReplaceAll(strings.ToValidUTF8(string(raw), "\uFFFD"), "\x00", "\uFFFD")
	var b strings.Builder
	for word := range strings.FieldsSeq(html.UnescapeString(text)) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		if b.Len() > maxTitleBytes {
			break
		}
	}
	return strings.TrimSpace(truncateUTF8(b.String(), maxTitleBytes))
}

// truncateUTF8 returns at most limit bytes of s, which is UTF-8, in whole runes.
func truncateUTF8(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "") }

// indexAnyOrEnd returns the index of the first of chars in s; the length of s if it has none.
func indexAnyOrEnd(s []byte, chars string) int {
	if i := bytes.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

// whitespace are what HTML holds for white space.
const whitespace = " \t\n\f\r"

// trimLeft returns s without the blanks at its start.
func trimLeft(s []byte) []byte {
	for len(s) > 0 && byteClasses[s[0]]&classBlank != 0 {
		s = s[1:]
	}
	return s
}

// trim returns s without the blanks at its ends.
func trim(s []byte) []byte {
	s = trimLeft(s)
	for len(s) > 0 && byteClasses[s[len(s)-1]]&classBlank != 0 {
		s = s[:len(s)-1]
	}
	return s
}

// indexFold returns where the word, which is in lower case, begins in s, in
// any case, or -1.
func indexFold(s []byte, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if equalFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
