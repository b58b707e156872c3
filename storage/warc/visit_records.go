package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Visit is a request and its response, as ArchiveWriter.WriteVisit archives them.
type Visit struct {
	URL            string               // the requested URL: WARC-Target-URI
	Date           time.Time            // when the request began; archived to the millisecond
	Exchange       *decorum.RawExchange // the bytes that were sent and received; must not be nil
	MetadataFields []Field              // lines of the metadata record, which is left out if there are none
	// PreviousCapture is what WriteVisit returned for an earlier visit to the URL; nil if the
	// caller knows of no earlier visit.
	PreviousCapture *CaptureDateAndDigest
}

// A CaptureDateAndDigest identifies the archived response of a URL, so that later visits to the URL can refer
// to it.
type CaptureDateAndDigest struct {
	Date          time.Time // WARC-Date of the response record
	PayloadDigest string    // its WARC-Payload-Digest; empty if the response was truncated
}

// Values of WARC-Profile for revisit records (WARC 1.1, 6.7).
const (
	// ProfileSamePayload is the profile of a response with the same payload as an earlier one.
	ProfileSamePayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	profileNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// ErrNoResponse is returned for a visit without a complete header of an HTTP/1.1 response, for example
// because the connection broke before.
var ErrNoResponse = errors.New("no response to archive")

// encodeRecords returns the records of v, as gzip members one after another, and the capture to which later
// visits refer: v.PreviousCapture if the response is a revisit record.
func (v *Visit) encodeRecords() (*bytes.Buffer, CaptureDateAndDigest, error) {
	method, _, _ := bytes.Cut(v.Exchange.RawRequest, []byte(" "))
	truncated := v.Exchange.Truncation != decorum.NotTruncated
	m, err := parseFinalResponse(string(method), v.Exchange.RawResponse, truncated)
	if err != nil {
		return nil, CaptureDateAndDigest{}, errors.Join(ErrNoResponse, err)
	}
	capture := CaptureDateAndDigest{Date: v.Date, PayloadDigest: m.payloadDigest}
	// A revisit record has the header only, and later visits refer to the same capture as this one.
	header, block := v.responseRecordHeader(m), m.raw
	if profile := v.revisitProfile(m); profile != "" {
		header, block = v.revisitRecordHeader(m, profile), m.raw[:m.headerSize]
		capture = CaptureDateAndDigest{}
		if v.PreviousCapture != nil {
			capture = *v.PreviousCapture
		}
	}
	var b bytes.Buffer
	b.Grow(len(block)/2 + 2<<10) // a guess of the compressed size
	// The other records name the first one by its ID.
	id := header.Get("WARC-Record-ID")
	err = writeRecord(&b, header, mediaTypeResponse, block)
	if err == nil {
		err = writeRecord(&b, v.concurrentRecordHeader(TypeRequest, id), mediaTypeRequest, v.Exchange.RawRequest)
	}
	if err == nil && len(v.MetadataFields) > 0 {
		err = writeRecord(&b, v.concurrentRecordHeader(TypeMetadata, id), mediaTypeFields,
			appendFields(nil, v.MetadataFields))
	}
	return &b, capture, err
}

// revisitProfile returns the profile of the revisit record for m, or an empty string if m needs a response
// record.
func (v *Visit) revisitProfile(m receivedResponse) string {
	switch {
	case m.status == http.StatusNotModified:
		return profileNotModified
	case v.PreviousCapture != nil && !m.hasNoPayload && m.payloadDigest != "" &&
		m.payloadDigest == v.PreviousCapture.PayloadDigest:
		return ProfileSamePayload
	}
	return ""
}

// commonRecordHeader returns the fields with which all records of v begin.
func (v *Visit) commonRecordHeader(kind string) Header {
	h := append(newHeader(kind, v.Date), Field{"WARC-Target-URI", v.URL})
	if v.Exchange.Addr.IsValid() {
		h.addFieldUnlessEmpty("WARC-IP-Address", v.Exchange.Addr.Addr().Unmap().WithZone("").String())
	}
	return h
}

// responseRecordHeader returns the header of a response record, with WARC-Truncated if the payload is not
// complete.
func (v *Visit) responseRecordHeader(m receivedResponse) Header {
	h := v.commonRecordHeader(TypeResponse)
	h.addFieldUnlessEmpty("WARC-Payload-Digest", m.payloadDigest)
	if m.payloadDigest == "" { // the body is incomplete
		truncation := v.Exchange.Truncation
		if truncation == decorum.NotTruncated { // the server sent less than the header announces
			truncation = decorum.TruncatedByDisconnect
		}
		h.addFieldUnlessEmpty("WARC-Truncated", truncation.String())
	}
	return h
}

// revisitRecordHeader returns the header of a revisit record, which refers to v.PreviousCapture if that is
// known.
func (v *Visit) revisitRecordHeader(m receivedResponse, profile string) Header {
	h := v.commonRecordHeader(TypeRevisit)
	h.addFieldUnlessEmpty("WARC-Profile", profile)
	h.addFieldUnlessEmpty("WARC-Refers-To-Target-URI", v.URL)
	if v.PreviousCapture != nil {
		h.addFieldUnlessEmpty("WARC-Refers-To-Date", v.PreviousCapture.Date.UTC().Format(dateFormat))
		h.addFieldUnlessEmpty("WARC-Payload-Digest", v.PreviousCapture.PayloadDigest)
	}
	return h
}

// concurrentRecordHeader returns the header of a record that belongs to the record with an ID.
func (v *Visit) concurrentRecordHeader(kind, id string) Header {
	h := v.commonRecordHeader(kind)
	h.addFieldUnlessEmpty("WARC-Concurrent-To", id)
	return h
}

// A receivedResponse is an HTTP/1.1 response as it was received.
type receivedResponse struct {
	raw           []byte // from the status line to the end of the body
	headerSize    int    // bytes of raw before the body
	status        int    // HTTP status
	payloadDigest string // digest of the body without its transfer coding; empty if the body is incomplete
	hasNoPayload  bool   // whether the body is empty
	untilClose    bool   // whether the body has no length, and ends with the connection
}

// parseFinalResponse returns the final response in the bytes that a server sent. It leaves out interim
// responses before it, and any bytes after it. It parses with net/http, which has received the bytes. An
// incomplete header is an error, an incomplete body is not. method is that of the request: a response to
// HEAD has no body. truncated says that the client stopped reading early, so that a body without a length
// is incomplete.
func parseFinalResponse(method string, received []byte, truncated bool) (receivedResponse, error) {
	for {
		m, err := parseResponse(method, received)
		if err != nil {
			return m, err
		}
		if m.status >= 200 {
			if truncated && m.untilClose {
				m.payloadDigest = ""
			}
			return m, nil
		}
		received = received[len(m.raw):]
	}
}

// parseResponse returns the response, interim or final, at the beginning of received.
func parseResponse(method string, received []byte) (receivedResponse, error) {
	source := bytes.NewReader(received)
	buffered := bufio.NewReader(source)
	// consumed returns how many bytes of received the response has taken so far.
	consumed := func() int { return len(received) - source.Len() - buffered.Buffered() }
	res, err := http.ReadResponse(buffered, &http.Request{Method: method})
	if err != nil {
		return receivedResponse{}, fmt.Errorf("incomplete or invalid HTTP/1.1 header: %w", err)
	}
	defer res.Body.Close()
	m := receivedResponse{headerSize: consumed(), status: res.StatusCode, untilClose: res.ContentLength < 0 &&
		len(res.TransferEncoding) == 0}
	hash := sha1.New()
	n, err := io.Copy(hash, res.Body)
	if err != nil {
		m.raw = received // the body is incomplete: everything belongs to it
		return m, nil
	}
	m.raw, m.payloadDigest, m.hasNoPayload = received[:consumed()], digestLabel(hash.Sum(nil)), n == 0
	return m, nil
}
