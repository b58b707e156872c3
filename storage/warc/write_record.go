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

// Values of WARC-Type for the records that an ArchiveWriter writes.
const (
	TypeWarcinfo = "warcinfo"
	TypeRequest  = "request"
	TypeResponse = "response"
	TypeMetadata = "metadata"
	TypeRevisit  = "revisit"
)

// Values of Content-Type for their blocks.
const (
	mediaTypeRequest  = "application/http;msgtype=request"
	mediaTypeResponse = "application/http;msgtype=response"
	mediaTypeFields   = "application/warc-fields"
)

// dateFormat is the format of WARC-Date: UTC, to the millisecond.
const dateFormat = "2006-01-02T15:04:05.000Z"

// newRecordID returns a WARC-Record-ID: a random UUID (RFC 9562, 5.4).
func newRecordID() string {
	var u [16]byte
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("<urn:uuid:%x-%x-%x-%x-%x>", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// digestLabel returns a SHA-1 as a labelled digest: sha1: and base 32.
func digestLabel(sum []byte) string { return "sha1:" + base32.StdEncoding.EncodeToString(sum) }

// sha1Digest returns the labelled digest of b.
func sha1Digest(b []byte) string {
	sum := sha1.Sum(b)
	return digestLabel(sum[:])
}

// gzipWriters holds *gzip.Writers for reuse.
var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// writeRecord appends a record to b, as a gzip member. It adds the fields about the block to h: digest,
// type and length.
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
