package storage

import (
	"bytes"
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
