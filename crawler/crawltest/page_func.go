package crawltest

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"time"
)

// A Request is what a page is asked.
type Request struct {
	Method string
	Host   string // without port
	Path   string // with its query
	Header http.Header
	Body   []byte    // of the request, at most 32 MiB of it
	At     time.Time // when it came
	Nth    int       // how often this URL has been asked for, this time included
}

// A Page answers requests for one path. It may be called by many at a time,
// and should say the same for the same Request.
type Page func(Request) Answer

// An Answer is what a site says to one request. The zero Answer is an empty
// page, sent at once.
type Answer struct {
	Status int // 0: 200
	Header http.Header
	Body   string
	Wait   time.Duration // before the answer begins, on top of the site's Latency
	Spread time.Duration // the body trickles out over so long
	Gzip   bool          // compress the body for those who accept it
	Fault  Fault
}

// A Fault is what goes wrong with an answer.
type Fault uint8

// Faults. The ones in the middle of a body strike when half of it is sent.
const (
	None       Fault = iota
	Hang             // nothing is sent, until the client goes away
	Stall            // the body stops in the middle, until the client goes away
	Reset            // the connection is reset before the answer
	ResetBody        // the connection is reset in the middle of the body
	Short            // the body is shorter than its Content-Length
	Unfinished       // a chunked body ends without its last chunk
	BadGzip          // the body is compressed, and damaged in the middle
)

// Always returns the page that gives the same answer to everybody.
func Always(a Answer) Page { return func(Request) Answer { return a } }

// HTML returns the answer 200 with an HTML page in UTF-8.
func HTML(body string) Answer { return Typed("text/html; charset=utf-8", body) }

// Text returns the answer 200 with plain text, such as a robots.txt.
func Text(body string) Answer { return Typed("text/plain; charset=utf-8", body) }

// Typed returns the answer 200 with a body of the given media type.
func Typed(contentType, body string) Answer {
	return Answer{Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Status returns an answer with the given status code and its name for a body.
func Status(code int) Answer {
	a := Text(http.StatusText(code) + "\n")
	a.Status = code
	return a
}

// Redirect returns an answer that leads to the given URL.
func Redirect(code int, to string) Answer {
	a := Status(code)
	a.Header.Set("Location", to)
	return a
}

// Latency is how long a site takes to answer. The zero Latency is none.
type Latency struct {
	Base   time.Duration // before each answer
	Jitter time.Duration // up to so much more, at random
	PerMB  time.Duration // for each 1,000,000 bytes of the body, while it is sent
	Seed   uint64        // chance is the same for the same Seed, host, path and Nth
}

// before returns how long the answer to r keeps its client waiting.
func (l Latency) before(r Request) time.Duration {
	if l.Jitter <= 0 {
		return l.Base
	}
	h := fnv.New64a()
	h.Write([]byte(r.Host + r.Path))
	chance := rand.New(rand.NewPCG(l.Seed^h.Sum64(), uint64(r.Nth)))
	return l.Base + time.Duration(chance.Int64N(int64(l.Jitter)))
}

// during returns how long a body of the given size takes to send.
func (l Latency) during(size int) time.Duration {
	return time.Duration(float64(l.PerMB) * float64(size) / 1e6)
}
