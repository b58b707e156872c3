package crawltest

import (
	"net/http"
	"time"
)

// A PageRequest is what a page is asked.
type PageRequest struct {
	Method     string
	Host       string // without port
	Path       string // with its query
	Header     http.Header
	Body       []byte    // of the request, at most 32 MiB of it
	ReceivedAt time.Time // when it came
	NthForURL  int       // how often this URL has been asked for, this time included
}

// A PageFunc answers requests for one path. It may be called by many at a time,
// and should say the same for the same PageRequest.
type PageFunc func(PageRequest) Response

// A Response is what a site says to one request. The zero Response is an empty
// page, sent at once.
type Response struct {
	Status         int // 0: 200
	Header         http.Header
	Body           string
	HeaderDelay    time.Duration // before the answer begins, on top of the site's Latency
	BodyDuration   time.Duration // the body trickles out over so long
	GzipIfAccepted bool          // compress the body for those who accept it
	Fault          ResponseFault
}

// A ResponseFault is what goes wrong with an answer.
type ResponseFault uint8

// Faults. The ones in the middle of a body strike when half of it is sent.
const (
	NoFault          ResponseFault = iota
	Hang                           // nothing is sent, until the client goes away
	StallBody                      // the body stops in the middle, until the client goes away
	Reset                          // the connection is reset before the answer
	ResetBody                      // the connection is reset in the middle of the body
	ShortBody                      // the body is shorter than its Content-Length
	MissingLastChunk               // a chunked body ends without its last chunk
	BadGzip                        // the body is compressed, and damaged in the middle
)

// StaticPage returns the page that gives the same answer to everybody.
func StaticPage(a Response) PageFunc { return func(PageRequest) Response { return a } }

// HTML returns the answer 200 with an HTML page in UTF-8.
func HTML(body string) Response { return ResponseOfType("text/html; charset=utf-8", body) }

// Text returns the answer 200 with plain text, such as a robots.txt.
func Text(body string) Response { return ResponseOfType("text/plain; charset=utf-8", body) }

// ResponseOfType returns the answer 200 with a body of the given media type.
func ResponseOfType(contentType, body string) Response {
	return Response{Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Status returns an answer with the given status code and its name for a body.
func Status(code int) Response {
	a := Text(http.StatusText(code) + "\n")
	a.Status = code
	return a
}

// Redirect returns an answer that leads to the given URL.
func Redirect(code int, to string) Response {
	a := Status(code)
	a.Header.Set("Location", to)
	return a
}
