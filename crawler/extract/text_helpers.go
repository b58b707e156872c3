package extract

import (
	"bytes"
	"iter"
	"strings"
	"unicode/utf8"

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

// unescape returns an attribute's value with its references decoded. It
// returns raw itself if there is nothing to decode.
func unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '&') < 0 && bytes.IndexByte(raw, 0) < 0 {
		return raw
	}
	return appendUnescaped(make([]byte, 0, len(raw)), raw)
}

// appendUnescaped appends an attribute's value to dst with its references
// decoded.
func appendUnescaped(dst, raw []byte) []byte {
	if bytes.IndexByte(raw, 0) >= 0 {
		raw = bytes.ReplaceAll(raw, []byte{0}, []byte("\uFFFD"))
	}
	for {
		i := bytes.IndexByte(raw, '&')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		text, n := decodeCharReference(raw[i:])
		dst = append(dst, text...)
		raw = raw[i+n:]
	}
}

// decodeCharReference decodes the character reference that s may begin with, and
// returns its text and its length. In an attribute, unlike in text, a name
// without a semicolon counts only if no letter, digit or "=" follows it, so
// that "?a=1&copy=2" keeps its parameter.
func decodeCharReference(s []byte) (text string, n int) {
	if bytes.HasPrefix(s, []byte("&amp;")) {
		return "&", len("&amp;")
	}
	n = 1
	numeric := n < len(s) && s[n] == '#'
	if numeric {
		n++
	}
	for n < len(s) && isAlphanumeric(s[n]) {
		n++
	}
	if numeric {
		return decodeNumericCharReference(s[:n], s)
	}
	closed := n < len(s) && s[n] == ';'
	if closed {
		n++
	}
	raw := string(s[:n])
	text = html.UnescapeString(raw)
	switch {
	case text == raw:
	case closed && (raw == "&semi;" || text[len(text)-1] != ';'):
		return text, n
	case !closed && utf8.RuneCountInString(text) == 1 && !(n < len(s) && s[n] == '='):
		return text, n
	}
	return "&", 1
}

// decodeNumericCharReference decodes a numeric reference; its digits may end before word does.
func decodeNumericCharReference(word, s []byte) (text string, n int) {
	n = len("&#")
	digits := "0123456789"
	if n < len(word) && word[n]|0x20 == 'x' {
		n++
		digits = "0123456789abcdefABCDEF"
	}
	first := n
	for n < len(word) && strings.IndexByte(digits, word[n]) >= 0 {
		n++
	}
	if n == first {
		return "&", 1
	}
	text = html.UnescapeString(string(s[:n]) + ";")
	if n < len(s) && s[n] == ';' {
		n++
	}
	return text, n
}

func isAlphanumeric(c byte) bool { return byteClasses[c]&classLetter != 0 || '0' <= c && c <= '9' }

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

// isCrawlableHref reports whether a link may lead to a page: it is neither empty nor
// only a fragment, and its scheme, if it has one, is one that is crawled.
func isCrawlableHref(ref []byte) bool {
	if len(ref) == 0 || ref[0] == '#' {
		return false
	}
	for i, c := range ref {
		switch {
		case c == ':':
			scheme := ref[:i]
			return equalFold(scheme, "https") || equalFold(scheme, "http") || equalFold(scheme, "ftp")
		case !isAlphanumeric(c) && c != '+' && c != '-' && c != '.':
			return true
		}
	}
	return true
}

// srcsetURLs yields the URLs of a srcset attribute (HTML standard §4.8.4.2.2).
// What is said of each, its width or density, does not matter here.
func srcsetURLs(s []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			s = bytes.TrimLeft(s, whitespace+",")
			end := indexAnyOrEnd(s, whitespace)
			url := bytes.TrimRight(s[:end], ",")
			if len(url) == 0 || !yield(url) {
				return
			}
			if s = s[end:]; len(url) == end { // no comma behind it: it has descriptors
				s = skipDescriptors(s)
			}
		}
	}
}

// skipDescriptors returns what follows the descriptors at the start of s: they
// end at a comma that is in no parentheses.
func skipDescriptors(s []byte) []byte {
	nested := false
	for i, c := range s {
		switch {
		case c == '(':
			nested = true
		case c == ')':
			nested = false
		case c == ',' && !nested:
			return s[i+1:]
		}
	}
	return nil
}
