package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// A NonGETRequest is how a URL is asked for, if not by GET. It is never written to.
type NonGETRequest struct {
	Method string // RFC 9110, section 9; not GET
	Body   []byte // at most MaxBodyBytes
}

// IsSafe reports whether the request may be made again unasked: the method is
// one by which nothing is meant to be changed (RFC 9110, section 9.2.1). The nil
// Request, a GET, is.
func (r *NonGETRequest) IsSafe() bool {
	return r == nil || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// MethodOrGet returns the method, GET for the nil NonGETRequest.
func (r *NonGETRequest) MethodOrGet() string {
	if r == nil {
		return http.MethodGet
	}
	return r.Method
}

// BodyReader returns a reader of the body as net/http expects it: nil if there is no body.
// The nil NonGETRequest has none.
func (r *NonGETRequest) BodyReader() io.Reader {
	if r == nil || len(r.Body) == 0 {
		return nil
	}
	return bytes.NewReader(r.Body)
}

// checkRequest returns an error if no Store may keep what e says of its request.
func (e *Entry) checkRequest() error {
	r := e.Request
	switch {
	case e.Sent && r.IsSafe():
		return fmt.Errorf("%v: marked as sent, which is for what must not be sent twice", e.URL)
	case r == nil:
		return nil
	case r.Method == "" || r.Method == http.MethodGet:
		return fmt.Errorf("%v: a request by %q; GET is the one that is not named", e.URL, r.Method)
	case !e.URL.Origin().IsHTTP():
		return fmt.Errorf("%v: a request by %s, which is one of HTTP", e.URL, r.Method)
	case len(r.Body) > MaxBodyBytes:
		return fmt.Errorf("%v: a request with a body of %d bytes, the most is %d", e.URL, len(r.Body), MaxBodyBytes)
	case e.Source == SourcePrerequisite || !e.RobotsFor.IsZero():
		return errors.New("an errand of the crawl, which is asked for by GET alone")
	}
	return nil
}
