package extract

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// titleText returns the text of a title element with references decoded, white space folded, and cut at
// maxTitleBytes between runes.
func titleText(raw []byte) string {
	const enough = 16 * maxTitleBytes // folding white space and decoding shorten the text
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

// truncateUTF8 returns the longest prefix of s of at most limit bytes that has only complete runes.
func truncateUTF8(s string, limit int) string { return strings.ToValidUTF8(s[:min(len(s), limit)], "") }

// indexAnyOrEnd returns the index in s of the first byte in chars, or len(s).
func indexAnyOrEnd(s []byte, chars string) int {
	if i := bytes.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}

// whitespace has the white space characters of HTML.
const whitespace = " \t\n\f\r"

// trimLeft returns s without leading white space.
func trimLeft(s []byte) []byte {
	for len(s) > 0 && byteClasses[s[0]]&classBlank != 0 {
		s = s[1:]
	}
	return s
}

// trim returns s without leading and trailing white space.
func trim(s []byte) []byte {
	s = trimLeft(s)
	for len(s) > 0 && byteClasses[s[len(s)-1]]&classBlank != 0 {
		s = s[:len(s)-1]
	}
	return s
}

// indexFold returns the index of word in s, ignoring ASCII case, or -1. word must be in lower case.
func indexFold(s []byte, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if equalFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
