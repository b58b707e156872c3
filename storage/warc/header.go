package warc

import (
	"strconv"
	"strings"
	"time"
)

// newHeader returns the fields that every record begins with.
func newHeader(kind string, date time.Time) Header {
	return Header{
		{"WARC-Type", kind},
		{"WARC-Record-ID", newRecordID()},
		{"WARC-Date", date.UTC().Format(dateFormat)},
	}
}

// A Field is a named field of a record, or a line of an application/warc-fields
// block.
type Field struct{ Name, Value string }

// A Header is the named fields of a record, in order. Names may occur more than
// once (WARC-Concurrent-To), and are compared without regard to case.
type Header []Field

// Get returns the value of the first field of the name, empty if there is none.
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

// contentLength returns what Content-Length says.
func (h Header) contentLength() (int64, bool) {
	n, err := strconv.ParseUint(h.Get("Content-Length"), 10, 63)
	return int64(n), err == nil
}

// appendFields appends a line for each field. In values, line breaks and other
// control characters become blanks: they would end the field.
func appendFields(b []byte, fields []Field) []byte {
	for _, f := range fields {
		b = append(append(b, f.Name...), ": "...)
		b = append(append(b, strings.Map(blankControlChar, f.Value)...), "\r\n"...)
	}
	return b
}

func blankControlChar(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}
