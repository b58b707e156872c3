package warc

import (
	"strconv"
	"strings"
	"time"
)

// newHeader returns the fields with which every record begins: type, a new ID and date.
func newHeader(kind string, date time.Time) Header {
	return Header{
		{"WARC-Type", kind},
		{"WARC-Record-ID", newRecordID()},
		{"WARC-Date", date.UTC().Format(dateFormat)},
	}
}

// A Field is a named field of a record, or a line of an application/warc-fields block.
type Field struct{ Name, Value string }

// A Header holds the named fields of a record, in order. A name may occur several times, as
// WARC-Concurrent-To does. Names are compared without regard to case.
type Header []Field

// Get returns the value of the first field with a name, or an empty string.
func (h Header) Get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// addFieldUnlessEmpty appends a field, unless its value is empty.
func (h *Header) addFieldUnlessEmpty(name, value string) {
	if value != "" {
		*h = append(*h, Field{name, value})
	}
}

// contentLength returns the value of Content-Length, and whether it is a valid length.
func (h Header) contentLength() (int64, bool) {
	n, err := strconv.ParseUint(h.Get("Content-Length"), 10, 63)
	return int64(n), err == nil
}

// appendFields appends a line for each field. It replaces line breaks and other control characters in
// values by blanks, because a line break would end the field.
func appendFields(b []byte, fields []Field) []byte {
	for _, f := range fields {
		b = append(append(b, f.Name...), ": "...)
		b = append(append(b, strings.Map(blankControlChar, f.Value)...), "\r\n"...)
	}
	return b
}

// blankControlChar returns a blank for a control character, and r otherwise.
func blankControlChar(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}
