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

// A Visit is one request and its answer, to be archived.
type Visit struct {
	URL             string                // as it was asked for: WARC-Target-URI
	Date            time.Time             // when the request began; kept to the millisecond
	Exchange        *decorum.RawExchange  // not nil
	MetadataFields  []Field               // lines of the metadata record; none: no such record
	PreviousCapture *CaptureDateAndDigest // where the URL was archived before; nil: not known
}

// CaptureDateAndDigest says what was archived of a URL, for later visits to it to refer to.
type CaptureDateAndDigest struct {
	Date          time.Time // WARC-Date of the response
	PayloadDigest string    // its WARC-Payload-Digest; empty if it was truncated
}

// Profiles of revisits (6.7).
const (
	// ProfileSamePayload is the WARC-Profile of an answer with the payload of an earlier one.
	ProfileSamePayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	profileNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// ErrNoResponse refuses to archive what is no answer: a connection that broke
// before a whole header of HTTP/1.1 had come.
var ErrNoResponse = errors.New("no answer to archive")

// encodeRecords returns the records of v, as gzip members one after the other, and
// what is kept by them: v.Before if they refer to it.
func (v *Visit) encodeRecords() (*bytes.Buffer, CaptureDateAndDigest, error) {
	method, _, _ := bytes.Cut(v.Exchange.RawRequest, []byte(" "))
	truncated := v.Exchange.Truncation != decorum.NotTruncated
	m, err := parseFinalResponse(string(method), v.Exchange.RawResponse, truncated)
	if err != nil {
		return nil, CaptureDateAndDigest{}, errors.Join(ErrNoResponse, err)
	}
	capture := CaptureDateAndDigest{Date: v.Date, PayloadDigest: m.payloadDigest}
	header, block := v.responseRecordHeader(m), m.raw
	if profile := v.revisitProfile(m); profile != "" {
		header, block = v.revisitRecordHeader(m, profile), m.raw[:m.headerSize]
		capture = CaptureDateAndDigest{}
		if v.PreviousCapture != nil {
			capture = *v.PreviousCapture
		}
	}
	var b bytes.Buffer
	b.Grow(len(block)/2 + 2<<10)
	id := header.Get("WARC-Record-ID")
	err = writeRecord(&b, header, mediaTypeResponse, block)
	if err == nil {
		err = writeRecord(&b, v.concurrentRecordHeader(TypeRequest, id), mediaTypeRequest, v.Exchange.RawRequest)
	}
	if err == nil && len(v.MetadataFields) > 0 {
		err = writeRecord(&b, v.concurrentRecordHeader(TypeMetadata, id), mediaTypeFields, appendFields(nil, v.MetadataFields))
	}
	return &b, capture, err
}

// revisitProfile returns the profile of the revisit that m is, empty if it is none.
func (v *Visit) revisitProfile(m receivedResponse) string {
	switch {
	case m.status == http.StatusNotModified:
		return profileNotModified
	case v.PreviousCapture != nil && !m.hasNoPayload && m.payloadDigest != "" && m.payloadDigest == v.PreviousCapture.PayloadDigest:
		return ProfileSamePayload
	}
	return ""
}

// commonRecordHeader returns the fields that all records of v begin with.
func (v *Visit) commonRecordHeader(kind string) Header {
	h := append(newHeader(kind, v.Date), Field{"WARC-Target-URI", v.URL})
	if v.Exchange.Addr.IsValid() {
		h.addFieldUnlessEmpty("WARC-IP-Address", v.Exchange.Addr.Addr().Unmap().WithZone("").String())
	}
	return h
}

func (v *Visit) responseRecordHeader(m receivedResponse) Header {
	h := v.commonRecordHeader(TypeResponse)
	h.addFieldUnlessEmpty("WARC-Payload-Digest", m.payloadDigest)
	if m.payloadDigest == "" {
		truncation := v.Exchange.Truncation
		if truncation == decorum.NotTruncated { // it was read as far as the server sent it
			truncation = decorum.TruncatedByDisconnect
		}
		h.addFieldUnlessEmpty("WARC-Truncated", truncation.String())
	}
	return h
}

// revisitRecordHeader returns the header of the record of an answer whose payload is where
// v.Before says.
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

// concurrentRecordHeader returns the header of a record that belongs to the one with the id.
func (v *Visit) concurrentRecordHeader(kind, id string) Header {
	h := v.commonRecordHeader(kind)
	h.addFieldUnlessEmpty("WARC-Concurrent-To", id)
	return h
}

// A receivedResponse is an HTTP/1.1 response as it was received.
type receivedResponse struct {
	raw           []byte // from the status line to the end of the body
	headerSize    int    // bytes of raw before the body
	status        int
	payloadDigest string // digest of the body without its transfer coding; empty if it is not whole
	hasNoPayload  bool   // there is no payload
	untilClose    bool   // the body has no length: the connection's end is its end
}

// parseFinalResponse finds the final response in what a server sent, reading it as
// net/http does, which received it. What stands before and after is not part of
// it. A body that ends early is no error, a header that does is. cut says that
// nobody waited for the end. The method is the request's: to HEAD there is no body,
// whatever the header says of it.
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

func parseResponse(method string, received []byte) (receivedResponse, error) {
	source := bytes.NewReader(received)
	buffered := bufio.NewReader(source)
	consumed := func() int { return len(received) - source.Len() - buffered.Buffered() }
	res, err := http.ReadResponse(buffered, &http.Request{Method: method})
	if err != nil {
		return receivedResponse{}, fmt.Errorf("not a whole header of HTTP/1.1: %w", err)
	}
	defer res.Body.Close()
	m := receivedResponse{headerSize: consumed(), status: res.StatusCode, untilClose: res.ContentLength < 0 && len(res.TransferEncoding) == 0}
	hash := sha1.New()
	n, err := io.Copy(hash, res.Body)
	if err != nil {
		m.raw = received // all that there is
		return m, nil
	}
	m.raw, m.payloadDigest, m.hasNoPayload = received[:consumed()], digestLabel(hash.Sum(nil)), n == 0
	return m, nil
}
