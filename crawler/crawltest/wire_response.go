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

// A wireResponse is an answer made ready for sending: the same bytes, pauses and
// faults over a socket and in memory.
type wireResponse struct {
	status        int
	header        http.Header
	body          []byte        // as it is sent: compressed if it is, never more than is really sent
	contentLength int64         // what Content-Length says; -1: chunked
	headerDelay   time.Duration // before the answer
	bodyDuration  time.Duration // over the body
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

// compress turns the body into gzip, damaged if that is the fault.
func (d *wireResponse) compress() {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	zw.Write(d.body) // a bytes.Buffer refuses nothing
	zw.Close()
	d.body = b.Bytes()
	if d.fault == BadGzip {
		const header = 10 // bytes; what follows is data
		for i := max(header, len(d.body)/2); i < len(d.body); i++ {
			d.body[i] ^= 0x55
		}
	}
	d.header.Set("Content-Encoding", "gzip")
	d.header.Add("Vary", "Accept-Encoding")
}

// setLengthAndCutBody sets the length, and leaves of the body what is really sent.
func (d *wireResponse) setLengthAndCutBody(method string) {
	d.contentLength = int64(len(d.body))
	if d.status == http.StatusNotModified || d.status == http.StatusNoContent {
		d.body, d.contentLength, d.fault = nil, 0, NoFault
		return
	}
	if method == http.MethodHead && d.breaksOff() {
		d.fault = NoFault // there is no middle
	}
	switch d.fault {
	case MissingLastChunk:
		d.contentLength = -1
	case ShortBody:
		d.contentLength = max(d.contentLength, 2) // something must be missing
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

// maxPieceBytes is how much of a body is sent at a time, at most: little enough to
// fit into the buffers of a connection.
const maxPieceBytes = 16 << 10

// bodyPieceCount returns into how many pieces the body is cut.
func (d *wireResponse) bodyPieceCount() int {
	n := (len(d.body) + maxPieceBytes - 1) / maxPieceBytes
	if d.bodyDuration > 0 {
		n = max(n, min(len(d.body), 10)) // a trickle, and not one late gush
	}
	return n
}

// bodyPieceAndSendTime returns piece i of the body, and when it is sent, counted from the
// start of the body.
func (d *wireResponse) bodyPieceAndSendTime(i int) (data []byte, at time.Duration) {
	n := d.bodyPieceCount()
	return d.body[len(d.body)*i/n : len(d.body)*(i+1)/n], d.bodyDuration * time.Duration(i+1) / time.Duration(n)
}

// retryAfterDelay returns what the answer's Retry-After asks for.
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
