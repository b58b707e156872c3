// Package jsonline builds lines of JSON member by member, with the same output as encoding/json but
// faster. A crawl writes several such lines for each page.
// Begin with ObjectBuilder. It also escapes control characters in JSON (EscapeControlChars).
//
// The package starts no goroutine and has no lock.
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

// Marshal returns v as a line of JSON. It does not escape <, > and &, so that URLs stay readable.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return EscapeControlChars(b.Bytes()), err
}

// NewEscapingEncoder returns an encoder whose output to w has passed through EscapeControlChars.
func NewEscapingEncoder(w io.Writer) *json.Encoder {
	return json.NewEncoder(controlCharEscapeWriter{w})
}

// NewEncoder returns an encoder like that of NewEscapingEncoder that does not escape <, > and &.
func NewEncoder(w io.Writer) *json.Encoder {
	e := NewEscapingEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// A controlCharEscapeWriter escapes the output of a json.Encoder, which writes each value in one
// call.
type controlCharEscapeWriter struct{ w io.Writer }

// Write implements io.Writer.
func (e controlCharEscapeWriter) Write(p []byte) (int, error) {
	if _, err := e.w.Write(EscapeControlChars(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EscapeControlChars returns JSON without characters that control a terminal or change the
// direction of text: it replaces the controls from U+007F to U+009F, and those for bidirectional
// text, by their escapes (\u202e). The meaning of the JSON is unchanged, because they occur in
// strings only. JSON without such characters is returned as is, not copied.
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

// runeNeedsEscape reports whether r must be escaped although encoding/json does not escape it. All
// such characters have at most four hexadecimal digits.
func runeNeedsEscape(r rune) bool {
	return r >= 0x7f && (r <= 0x9f || unicode.Is(unicode.Bidi_Control, r))
}

// An ObjectBuilder builds a line that is a JSON object, from its first member to its last. It does
// not escape the names of members, which must need no escape.
type ObjectBuilder struct {
	text  []byte
	depth int   // open objects
	err   error // first error
}

// NewObjectBuilder returns an object without members. It replaces what is in buf, and Line returns buf if
// that is long enough.
func NewObjectBuilder(buf []byte) *ObjectBuilder {
	return &ObjectBuilder{text: append(buf[:0], '{'), depth: 1}
}

// Line closes all open objects and returns the line. The error is that of the first member that
// JSON cannot represent.
func (o *ObjectBuilder) Line() ([]byte, error) {
	for o.depth > 0 {
		o.CloseObject()
	}
	return append(o.text, '\n'), o.err
}

// OpenObject begins a member that is an object. Later members belong to it until CloseObject.
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

// IntNonZero adds a number unless it is 0.
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

// BoolIfTrue adds true if is is true, and nothing otherwise.
func (o *ObjectBuilder) BoolIfTrue(name string, is bool) {
	if is {
		o.Bool(name, is)
	}
}

// Time adds a time (RFC 3339). A year outside the range from 0 to 9999 is an error.
func (o *ObjectBuilder) Time(name string, t time.Time) {
	if y := t.Year(); y < 0 || y > 9999 {
		o.setErr(errYear)
	}
	o.appendName(name)
	o.text = append(o.text, '"')
	o.text = t.AppendFormat(o.text, time.RFC3339Nano)
	o.text = append(o.text, '"')
}

// String adds a string. Bytes that are not UTF-8 become U+FFFD.
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

// StringNonEmpty adds a string unless it is empty.
func (o *ObjectBuilder) StringNonEmpty(name, s string) {
	if s != "" {
		o.String(name, s)
	}
}

// Value adds v as encoding/json encodes it.
func (o *ObjectBuilder) Value(name string, v any) {
	text, err := Marshal(v)
	o.setErr(err)
	o.appendName(name)
	o.text = append(o.text, bytes.TrimSuffix(text, []byte("\n"))...)
}

// setErr records the first error.
func (o *ObjectBuilder) setErr(err error) {
	o.err = cmp.Or(o.err, err)
}

// needsNoEscape reports whether JSON can contain s unchanged, as it can nearly every URL.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// WriteIndented writes v to w as indented JSON with control characters escaped.
func WriteIndented(w io.Writer, v any) error {
	e := NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
