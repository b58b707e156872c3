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

// A delivery is an answer made ready for sending: the same bytes, pauses and
// faults over a socket and in memory.
type delivery struct {
	status int
	header http.Header
	body   []byte        // as it is sent: compressed if it is, never more than is really sent
	length int64         // what Content-Length says; -1: chunked
	wait   time.Duration // before the answer
	spread time.Duration // over the body
	fault  Fault
}

// newDelivery prepares the answer to a request.
func newDelivery(r Request, a Answer, l Latency) delivery {
	d := delivery{status: a.Status, header: maps.Clone(a.Header), body: []byte(a.Body), fault: a.Fault,
		wait: a.Wait + l.before(r)}
	if d.status == 0 {
		d.status = http.StatusOK
	}
	if d.header == nil {
		d.header = http.Header{}
	}
	if unchanged(r.Header, d) {
		d.status, d.body = http.StatusNotModified, nil
	}
	if a.Gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || a.Fault == BadGzip {
		d.compress()
	}
	d.spread = a.Spread + l.during(len(d.body))
	d.measure(r.Method)
	return d
}

// compress turns the body into gzip, damaged if that is the fault.
func (d *delivery) compress() {
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

// measure sets the length, and leaves of the body what is really sent.
func (d *delivery) measure(method string) {
	d.length = int64(len(d.body))
	if d.status == http.StatusNotModified || d.status == http.StatusNoContent {
		d.body, d.length, d.fault = nil, 0, None
		return
	}
	if method == http.MethodHead && d.breaks() {
		d.fault = None // there is no middle
	}
	switch d.fault {
	case Unfinished:
		d.length = -1
	case Short:
		d.length = max(d.length, 2) // something must be missing
	}
	if method == http.MethodHead {
		d.body = nil
	} else if d.breaks() {
		d.body = d.body[:len(d.body)/2]
	}
	if d.length >= 0 {
		d.header.Set("Content-Length", strconv.FormatInt(d.length, 10))
	}
}

// breaks reports whether the body breaks off in the middle.
func (d *delivery) breaks() bool {
	switch d.fault {
	case Stall, ResetBody, Short, Unfinished:
		return true
	}
	return false
}

// pieceSize is how much of a body is sent at a time, at most: little enough to
// fit into the buffers of a connection.
const pieceSize = 16 << 10

// pieces returns into how many pieces the body is cut.
func (d *delivery) pieces() int {
	n := (len(d.body) + pieceSize - 1) / pieceSize
	if d.spread > 0 {
		n = max(n, min(len(d.body), 10)) // a trickle, and not one late gush
	}
	return n
}

// piece returns piece i of the body, and when it is sent, counted from the
// start of the body.
func (d *delivery) piece(i int) (data []byte, at time.Duration) {
	n := d.pieces()
	return d.body[len(d.body)*i/n : len(d.body)*(i+1)/n], d.spread * time.Duration(i+1) / time.Duration(n)
}

// retryAfter returns what the answer's Retry-After asks for.
func (d *delivery) retryAfter(now time.Time) time.Duration {
	v := d.header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
