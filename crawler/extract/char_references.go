package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// unescape returns the value of an attribute with character references decoded. It returns raw
// itself if there is nothing to decode.
func unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '&') < 0 && bytes.IndexByte(raw, 0) < 0 {
		return raw
	}
	return appendUnescaped(make([]byte, 0, len(raw)), raw)
}

// appendUnescaped appends the value of an attribute, with character references decoded, to dst.
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

// decodeCharReference decodes the character reference at the start of s, which begins with "&". It
// returns its text and its length in s; if s begins with no reference, it returns the "&". In an
// attribute, unlike in text, a name without a semicolon counts only if no letter, digit or "="
// follows it, so that "?a=1&copy=2" keeps its parameter.
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
	// A named reference. html.UnescapeString knows the names, but follows the rules for text: it also
	// decodes a prefix of an unterminated name, as in "&notit".
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

// decodeNumericCharReference decodes a numeric reference at the start of s. word is the reference
// up to the last letter or digit; its digits may end earlier.
func decodeNumericCharReference(word, s []byte) (text string, n int) {
	n = len("&#")
	digits := "0123456789"
	if n < len(word) && word[n]|0x20 == 'x' {
		n++
		digits = "0123456789abcdefABCDEF"
	}
	// The reference ends with its last digit; a semicolon after it is optional.
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
