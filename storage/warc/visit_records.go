package warc

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"github.com/decorum-crawler/decorum"
)

// A Visit is one request and its answer, to be archived.
type Visit struct {
	URL      string            // as it was asked for: WARC-Target-URI
	Date     time.Time         // when the request began; kept to the millisecond
	Exchange *decorum.Exchange // not nil
	Metadata []Field           // lines of the metadata record; none: no such record
	Before   *Capture          // where the URL was archived before; nil: not known
}

// Capture says what was archived of a URL, for later visits to it to refer to.
type Capture struct {
	Date    time.Time // WARC-Date of the response
	Payload string    // its WARC-Payload-Digest; empty if it was truncated
}

// Profiles of revisits (6.7).
const (
	// SamePayload is the WARC-Profile of an answer with the payload of an earlier one.
	SamePayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	notModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// ErrNoAnswer refuses to archive what is no answer: a connection that broke
// before a whole header of HTTP/1.1 had come.
var ErrNoAnswer = errors.New("no answer to archive")

// records returns the records of v, as gzip members one after the other, and
// what is kept by them: v.Before if they refer to it.
func (v *Visit) records() (*bytes.Buffer, Capture, error) {
	m, err := readMessage(methodOf(v.Exchange.Request), v.Exchange.Response, v.Exchange.Truncation != decorum.NotTruncated)
	if err != nil {
		return nil, Capture{}, errors.Join(ErrNoAnswer, err)
	}
	capture := Capture{Date: v.Date, Payload: m.payload}
	answer, block := v.response(m), m.raw
	if profile := v.profile(m); profile != "" {
		answer, block = v.revisit(m, profile), m.raw[:m.head]
		capture = Capture{}
		if v.Before != nil {
			capture = *v.Before
		}
	}
	var b bytes.Buffer
	b.Grow(len(block)/2 + 2<<10)
	id := answer.Get("WARC-Record-ID")
	err = writeRecord(&b, answer, httpResponse, block)
	if err == nil {
		err = writeRecord(&b, v.concurrent(Request, id), httpRequest, v.Exchange.Request)
	}
	if err == nil && len(v.Metadata) > 0 {
		err = writeRecord(&b, v.concurrent(Metadata, id), warcFields, appendFields(nil, v.Metadata))
	}
	return &b, capture, err
}

// profile returns the profile of the revisit that m is, empty if it is none.
func (v *Visit) profile(m message) string {
	switch {
	case m.status == http.StatusNotModified:
		return notModified
	case v.Before != nil && !m.empty && m.payload != "" && m.payload == v.Before.Payload:
		return SamePayload
	}
	return ""
}

// header returns the fields that all records of v begin with.
func (v *Visit) header(kind string) Header {
	h := append(newHeader(kind, v.Date), Field{"WARC-Target-URI", v.URL})
	if v.Exchange.Addr.IsValid() {
		h.add("WARC-IP-Address", v.Exchange.Addr.Addr().Unmap().WithZone("").String())
	}
	return h
}

func (v *Visit) response(m message) Header {
	h := v.header(Response)
	h.add("WARC-Payload-Digest", m.payload)
	if m.payload == "" {
		cut := v.Exchange.Truncation
		if cut == decorum.NotTruncated { // it was read as far as the server sent it
			cut = decorum.TruncatedByDisconnect
		}
		h.add("WARC-Truncated", cut.String())
	}
	return h
}

// revisit returns the header of the record of an answer whose payload is where
// v.Before says.
func (v *Visit) revisit(m message, profile string) Header {
	h := v.header(Revisit)
	h.add("WARC-Profile", profile)
	h.add("WARC-Refers-To-Target-URI", v.URL)
	if v.Before != nil {
		h.add("WARC-Refers-To-Date", v.Before.Date.UTC().Format(dateFormat))
		h.add("WARC-Payload-Digest", v.Before.Payload)
	}
	return h
}

// concurrent returns the header of a record that belongs to the one with the id.
func (v *Visit) concurrent(kind, id string) Header {
	h := v.header(kind)
	h.add("WARC-Concurrent-To", id)
	return h
}
