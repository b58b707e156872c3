package warc

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"strconv"
	"sync"

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
