package storage

import (
	"bytes"
	"io"
	"net/http"
)

// A NonGETRequest is a request to a URL with a method other than GET, such as a submitted form.
// Callers and Stores never write to it.
type NonGETRequest struct {
	Method string // RFC 9110, section 9; not GET
	Body   []byte // at most MaxBodyBytes
}

// IsSafe reports whether the request can be repeated without harm, because its method is not meant
// to change anything on the server (RFC 9110, section 9.2.1): HEAD, OPTIONS, or the nil
// NonGETRequest, which is a GET.
func (r *NonGETRequest) IsSafe() bool {
	return r == nil || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// MethodOrGet returns the method of the request, GET for the nil NonGETRequest.
func (r *NonGETRequest) MethodOrGet() string {
	if r == nil {
		return http.MethodGet
	}
	return r.Method
}

// BodyReader returns a reader of the body in the form that net/http expects: nil if the body is
// empty or the NonGETRequest is nil.
func (r *NonGETRequest) BodyReader() io.Reader {
	if r == nil || len(r.Body) == 0 {
		return nil
	}
	return bytes.NewReader(r.Body)
}
