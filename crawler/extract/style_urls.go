package extract

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf8"
)

// styleURLs yields the URLs that a style sheet, or the style attribute of an element, names by url() or
// @import (CSS Syntax Module Level 3, section 4.3). It leaves out those of @namespace, which nobody fetches.
func styleURLs(s []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		t := styleTokenizer{input: s}
		for t.pos < len(t.input) {
			if url, ok := t.nextURL(); ok && !yield(url) {
				return
			}
		}
	}
}

// A styleTokenizer reads a style sheet.
type styleTokenizer struct {
	input       []byte
	pos         int  // index in input of the next byte to read
	afterImport bool // only blanks and comments since @import
}

// nextURL moves past the next token. It returns false if that names no URL.
func (t *styleTokenizer) nextURL() (url []byte, ok bool) {
	c, isImport := t.input[t.pos], t.afterImport
	switch {
	case byteClasses[c]&classBlank != 0:
		t.pos++
		return nil, false
	case bytes.HasPrefix(t.input[t.pos:], []byte("/*")):
		t.skipComment()
		return nil, false
	}
	t.afterImport = false
	switch {
	case c == '"' || c == '\'':
		return t.readString(), isImport
	case c == '@':
		t.pos++
		t.startAtRule(t.readName())
	case isStyleNameByte(c):
		if name := t.readName(); equalFold(name, "url") && t.pos < len(t.input) && t.input[t.pos] == '(' {
			t.pos++
			return t.readURL()
		}
	default:
		t.pos++
	}
	return nil, false
}

// skipComment moves past a comment.
func (t *styleTokenizer) skipComment() {
	rest := t.input[t.pos+len("/*"):]
	if end := bytes.Index(rest, []byte("*/")); end >= 0 {
		t.pos += len("/*") + end + len("*/")
	} else {
		t.pos = len(t.input)
	}
}

// startAtRule acts on the name of an at-rule that was just read.
func (t *styleTokenizer) startAtRule(name []byte) {
	switch {
	case equalFold(name, "import"):
		t.afterImport = true
	case equalFold(name, "namespace"):
		t.pos += indexAnyOrEnd(t.input[t.pos:], ";")
	}
}

// isStyleNameByte reports whether c may be part of a name. A backslash begins an escape.
func isStyleNameByte(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '_' || c == '\\' || c >= utf8.RuneSelf
}

// readName reads a name, with escapes as written.
func (t *styleTokenizer) readName() []byte {
	start := t.pos
	for t.pos < len(t.input) && isStyleNameByte(t.input[t.pos]) {
		t.skipByteOrEscape()
	}
	return t.input[start:t.pos]
}

// skipByteOrEscape moves past one byte, or past a backslash and the byte that it escapes.
func (t *styleTokenizer) skipByteOrEscape() {
	if t.input[t.pos] == '\\' {
		t.pos++
	}
	t.pos = min(t.pos+1, len(t.input))
}

// readString reads a string and returns its text. A string that the end of its line cuts off has none.
func (t *styleTokenizer) readString() []byte {
	quote := t.input[t.pos]
	t.pos++
	for start := t.pos; t.pos < len(t.input); t.skipByteOrEscape() {
		switch t.input[t.pos] {
		case quote:
			t.pos++
			return unescapeStyle(t.input[start : t.pos-1])
		case '\n':
			return nil
		}
	}
	return nil
}

// readURL reads what follows "url(".
func (t *styleTokenizer) readURL() (url []byte, ok bool) {
	t.pos = len(t.input) - len(trimLeft(t.input[t.pos:]))
	if t.pos < len(t.input) && (t.input[t.pos] == '"' || t.input[t.pos] == '\'') {
		return t.readString(), true
	}
	start := t.pos
	for t.pos < len(t.input) && t.input[t.pos] != ')' {
		t.skipByteOrEscape()
	}
	url = trim(t.input[start:t.pos])
	return unescapeStyle(url), !bytes.ContainsAny(url, whitespace+`"'(`)
}

// unescapeStyle returns s with the escapes of style sheets decoded.
func unescapeStyle(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	const maxHexDigits = 6
	var text []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			text = append(text, s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		digits := 0
		for digits < maxHexDigits && i+digits < len(s) && isHexDigit(s[i+digits]) {
			digits++
		}
		switch {
		case digits > 0:
			r, _ := strconv.ParseUint(string(s[i:i+digits]), 16, 32)
			text = utf8.AppendRune(text, rune(r))
			if i += digits - 1; i+1 < len(s) && byteClasses[s[i+1]]&classBlank != 0 {
				i++ // a blank ends the digits
			}
		case s[i] != '\n': // an escaped end of line stands for nothing
			text = append(text, s[i])
		}
	}
	return text
}

// isHexDigit reports whether c is a hexadecimal digit.
func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
