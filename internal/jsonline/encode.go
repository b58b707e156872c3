// Package jsonline puts together lines of JSON member by member, in the very words of
// encoding/json: for the few kinds of lines of which a crawl writes several a page.
package jsonline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

var errYear = errors.New("a time has no year of four digits")

// Marshal returns v in JSON, as a line. URLs stay readable: <, > and & are not escaped.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return EscapeControlChars(b.Bytes()), err
}

// NewEscapingEncoder returns an encoder that writes values to w as EscapeControlChars returns them.
func NewEscapingEncoder(w io.Writer) *json.Encoder {
	return json.NewEncoder(controlCharEscapeWriter{w})
}

// NewEncoder returns an encoder as NewEscapingEncoder does that leaves <, > and & as they are.
func NewEncoder(w io.Writer) *json.Encoder {
	e := NewEscapingEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// A controlCharEscapeWriter escapes the output of an encoder, which writes each value at once.
type controlCharEscapeWriter struct{ w io.Writer }

func (e controlCharEscapeWriter) Write(p []byte) (int, error) {
	if _, err := e.w.Write(EscapeControlChars(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapeControlChars returns JSON without characters that control a terminal or change the
// direction of the text around them: it replaces controls from U+007F to U+009F, and
// those for bidirectional text, by their escapes (\u202e). The meaning is the same,
// because they occur in strings only. JSON without such characters is returned
// unchanged.
func EscapeControlChars(text []byte) []byte {
	if !bytes.ContainsFunc(text, runeNeedsEscape) {
		return text
	}
	escaped := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if runeNeedsEscape(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = append(escaped, text[:size]...)
		}
		text = text[size:]
	}
	return escaped
}

// runeNeedsEscape reports whether a character must be escaped although encoding/json does not
// escape it. All such characters have at most four hexadecimal digits.
func runeNeedsEscape(r rune) bool {
	return r >= 0x7f && (r <= 0x9f || unicode.Is(unicode.Bidi_Control, r))
}

// An ObjectBuilder is the beginning of one, which is put together from its first member to its
// last. Names of members need no escape: they are the program's own.
type ObjectBuilder struct {
	text  []byte
	depth int // objects
	err   error
}

// NewObjectBuilder returns an object without members, with room for so many bytes. It grows.
func NewObjectBuilder(capacity int) *ObjectBuilder {
	return &ObjectBuilder{text: append(make([]byte, 0, capacity), '{'), depth: 1}
}

// Line ends what is open, and returns it all as a line. The error is that of the first
// member that has no form in JSON.
func (o *ObjectBuilder) Line() ([]byte, error) {
	for o.depth > 0 {
		o.CloseObject()
	}
	return append(o.text, '\n'), o.err
}

// OpenObject begins a member that is an object. What follows is in it.
func (o *ObjectBuilder) OpenObject(name string) {
	o.appendName(name)
	o.text = append(o.text, '{')
	o.depth++
}

// CloseObject ends the object that was opened last.
func (o *ObjectBuilder) CloseObject() {
	o.text = append(o.text, '}')
	o.depth--
}

// appendName begins a member.
func (o *ObjectBuilder) appendName(name string) {
	if o.text[len(o.text)-1] != '{' {
		o.text = append(o.text, ',')
	}
	o.text = append(o.text, '"')
	o.text = append(o.text, name...)
	o.text = append(o.text, `":`...)
}

// Int adds a number.
func (o *ObjectBuilder) Int(name string, n int64) {
	o.appendName(name)
	o.text = strconv.AppendInt(o.text, n, 10)
}

// IntNonZero adds a number that is not 0.
func (o *ObjectBuilder) IntNonZero(name string, n int64) {
	if n != 0 {
		o.Int(name, n)
	}
}

// Bool adds true or false.
func (o *ObjectBuilder) Bool(name string, is bool) {
	o.appendName(name)
	o.text = strconv.AppendBool(o.text, is)
}

// BoolIfTrue adds true where that is so.
func (o *ObjectBuilder) BoolIfTrue(name string, is bool) {
	if is {
		o.Bool(name, is)
	}
}

// Time adds a moment (RFC 3339).
func (o *ObjectBuilder) Time(name string, t time.Time) {
	if y := t.Year(); y < 0 || y > 9999 {
		o.setErr(errYear)
	}
	o.appendName(name)
	o.text = append(o.text, '"')
	o.text = t.AppendFormat(o.text, time.RFC3339Nano)
	o.text = append(o.text, '"')
}

// String adds text. What is not UTF-8 in it becomes U+FFFD.
func (o *ObjectBuilder) String(name, s string) {
	if !needsNoEscape(s) {
		o.Value(name, s)
		return
	}
	o.appendName(name)
	o.text = append(o.text, '"')
	o.text = append(o.text, s...)
	o.text = append(o.text, '"')
}

// StringNonEmpty adds text that is not empty.
func (o *ObjectBuilder) StringNonEmpty(name, s string) {
	if s != "" {
		o.String(name, s)
	}
}

// Value adds what encoding/json makes of v.
func (o *ObjectBuilder) Value(name string, v any) {
	text, err := Marshal(v)
	o.setErr(err)
	o.appendName(name)
	o.text = append(o.text, bytes.TrimSuffix(text, []byte("\n"))...)
}

func (o *ObjectBuilder) setErr(err error) {
	o.err = cmp.Or(o.err, err)
}

// needsNoEscape reports whether s stands in JSON as it is, as nearly every URL does.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// WriteIndented writes v as JSON for people: indented, with control characters escaped.
func WriteIndented(w io.Writer, v any) error {
	e := NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
