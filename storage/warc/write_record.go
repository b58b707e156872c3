package warc

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Types of records that an ArchiveWriter writes, as WARC-Type names them.
const (
	TypeWarcinfo = "warcinfo"
	TypeRequest  = "request"
	TypeResponse = "response"
	TypeMetadata = "metadata"
	TypeRevisit  = "revisit"
)

// Media types of blocks.
const (
	mediaTypeRequest  = "application/http;msgtype=request"
	mediaTypeResponse = "application/http;msgtype=response"
	mediaTypeFields   = "application/warc-fields"
)

// dateFormat is how WARC-Date is written: UTC, to the millisecond.
const dateFormat = "2006-01-02T15:04:05.000Z"

// newRecordID returns a WARC-Record-ID: a random UUID (RFC 9562, 5.4).
func newRecordID() string {
	var u [16]byte
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// digestLabel writes a digest as archives do.
func digestLabel(sum []byte) string { return "sha1:" + base32.StdEncoding.EncodeToString(sum) }

func sha1Digest(b []byte) string {
	sum := sha1.Sum(b)
	return digestLabel(sum[:])
}

// newHeader returns the fields that every record begins with.
func newHeader(kind string, date time.Time) Header {
	return Header{
		{"WARC-Type", kind},
		{"WARC-Record-ID", newRecordID()},
		{"WARC-Date", date.UTC().Format(dateFormat)},
	}
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// writeRecord appends a record to b: a gzip member. The fields about the block
// are added here.
func writeRecord(b *bytes.Buffer, h Header, contentType string, block []byte) error {
	h.addFieldUnlessEmpty("WARC-Block-Digest", sha1Digest(block))
	h.addFieldUnlessEmpty("Content-Type", contentType)
	h.addFieldUnlessEmpty("Content-Length", strconv.Itoa(len(block)))
	head := append(appendFields([]byte("WARC/1.1\r\n"), h), "\r\n"...)

	z := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(z)
	z.Reset(b)
	for _, part := range [][]byte{head, block, []byte("\r\n\r\n")} {
		if _, err := z.Write(part); err != nil {
			return err
		}
	}
	return z.Close()
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
