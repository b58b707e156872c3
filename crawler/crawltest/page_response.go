package crawltest

import (
	"net/http"
	"time"
)

// A PageRequest is a request for a page.
type PageRequest struct {
	Method     string
	Host       string // without port
	Path       string // with its query
	Header     http.Header
	Body       []byte    // the first 32 MiB of the request's body
	ReceivedAt time.Time // when the request arrived
	NthForURL  int       // how often this URL was requested, this request included
}

// A PageFunc answers requests for one path. It is called concurrently, and should return the same
// Response for the same PageRequest.
type PageFunc func(PageRequest) Response

// A Response is the answer of a site to one request. The zero Response is an empty page with status
// 200, sent at once.
type Response struct {
	Status         int // 0: 200
	Header         http.Header
	Body           string
	HeaderDelay    time.Duration // before the answer begins, on top of the site's Latency
	BodyDuration   time.Duration // from the first to the last byte of the body, on top of the Latency
	GzipIfAccepted bool          // compress the body for clients that accept gzip
	Fault          ResponseFault
}

// A ResponseFault is a fault of an answer.
type ResponseFault uint8

// The faults. A fault in the middle of a body occurs after half of it.
const (
	NoFault          ResponseFault = iota
	Hang                           // nothing is sent until the client goes away
	StallBody                      // the body stops in the middle until the client goes away
	Reset                          // the connection is reset before the answer
	ResetBody                      // the connection is reset in the middle of the body
	ShortBody                      // the body is shorter than its Content-Length
	MissingLastChunk               // a chunked body ends without its last chunk
	BadGzip                        // the body is compressed, and damaged in the middle
)

// StaticPage returns a PageFunc that answers every request with a.
func StaticPage(a Response) PageFunc { return func(PageRequest) Response { return a } }

// HTML returns an answer with status 200 and an HTML page in UTF-8.
func HTML(body string) Response { return ResponseOfType("text/html; charset=utf-8", body) }

// Text returns an answer with status 200 and plain text, such as a robots.txt.
func Text(body string) Response { return ResponseOfType("text/plain; charset=utf-8", body) }

// ResponseOfType returns an answer with status 200 and a body of the given media type.
func ResponseOfType(contentType, body string) Response {
	return Response{Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Status returns an answer with the given status code, whose body is the name of the status.
func Status(code int) Response {
	a := Text(http.StatusText(code) + "\n")
	a.Status = code
	return a
}

// Redirect returns an answer with the given status code that redirects to the URL to.
func Redirect(code int, to string) Response {
	a := Status(code)
	a.Header.Set("Location", to)
	return a
}
