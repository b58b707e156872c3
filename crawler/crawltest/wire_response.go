package crawltest

import (
	"bytes"
	"compress/gzip"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A wireResponse is an answer that is ready to be sent, with the same bytes, pauses and faults over a
// socket and in memory.
type wireResponse struct {
	status        int
	header        http.Header
	body          []byte        // the bytes to send: compressed, and cut where a fault ends them
	contentLength int64         // the value of Content-Length; -1: chunked
	headerDelay   time.Duration // before the answer
	bodyDuration  time.Duration // from the first to the last byte of the body
	fault         ResponseFault
}

// prepareResponse prepares the answer to a request.
func prepareResponse(r PageRequest, a Response, l Latency) wireResponse {
	d := wireResponse{status: a.Status, header: maps.Clone(a.Header), body: []byte(a.Body), fault: a.Fault,
		headerDelay: a.HeaderDelay + l.headerDelay(r)}
	if d.status == 0 {
		d.status = http.StatusOK
	}
	if d.header == nil {
		d.header = http.Header{}
	}
	if isNotModified(r.Header, d) {
		d.status, d.body = http.StatusNotModified, nil
	}
	if a.GzipIfAccepted && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || a.Fault == BadGzip {
		d.compress()
	}
	d.bodyDuration = a.BodyDuration + l.bodyDuration(len(d.body))
	d.setLengthAndCutBody(r.Method)
	return d
}

// compress compresses the body with gzip, and damages it if the fault is BadGzip.
func (d *wireResponse) compress() {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	zw.Write(d.body) // a write to a bytes.Buffer cannot fail
	zw.Close()
	d.body = b.Bytes()
	if d.fault == BadGzip {
		const header = 10 // bytes before the compressed data, which stay valid
		for i := max(header, len(d.body)/2); i < len(d.body); i++ {
			d.body[i] ^= 0x55
		}
	}
	d.header.Set("Content-Encoding", "gzip")
	d.header.Add("Vary", "Accept-Encoding")
}

// setLengthAndCutBody sets Content-Length, and cuts the body to the bytes that are sent.
func (d *wireResponse) setLengthAndCutBody(method string) {
	d.contentLength = int64(len(d.body))
	if d.status == http.StatusNotModified || d.status == http.StatusNoContent {
		d.body, d.contentLength, d.fault = nil, 0, NoFault
		return
	}
	if method == http.MethodHead && d.breaksOff() {
		d.fault = NoFault // an answer to HEAD has no body that could break off
	}
	switch d.fault {
	case MissingLastChunk:
		d.contentLength = -1
	case ShortBody:
		d.contentLength = max(d.contentLength, 2) // so that at least one byte is missing
	}
	if method == http.MethodHead {
		d.body = nil
	} else if d.breaksOff() {
		d.body = d.body[:len(d.body)/2]
	}
	if d.contentLength >= 0 {
		d.header.Set("Content-Length", strconv.FormatInt(d.contentLength, 10))
	}
}

// breaksOff reports whether the body breaks off in the middle.
func (d *wireResponse) breaksOff() bool {
	switch d.fault {
	case StallBody, ResetBody, ShortBody, MissingLastChunk:
		return true
	}
	return false
}

// maxPieceBytes is the largest piece of a body that is sent at once. It fits into the buffers of a
// connection.
const maxPieceBytes = 16 << 10

// bodyPieceCount returns the number of pieces in which the body is sent.
func (d *wireResponse) bodyPieceCount() int {
	n := (len(d.body) + maxPieceBytes - 1) / maxPieceBytes
	if d.bodyDuration > 0 {
		n = max(n, min(len(d.body), 10)) // so that bytes arrive during the whole bodyDuration
	}
	return n
}

// bodyPieceAndSendTime returns piece i of the body, and when it is sent after the start of the body.
func (d *wireResponse) bodyPieceAndSendTime(i int) (data []byte, at time.Duration) {
	n := d.bodyPieceCount()
	return d.body[len(d.body)*i/n : len(d.body)*(i+1)/n], d.bodyDuration * time.Duration(i+1) / time.Duration(n)
}

// retryAfterDelay returns the time from now that the answer's Retry-After names, and 0 if there is no
// valid one.
func (d *wireResponse) retryAfterDelay(now time.Time) time.Duration {
	v := d.header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
