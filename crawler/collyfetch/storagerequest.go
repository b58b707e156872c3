package collyfetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/storage"
)

// Reasons not to queue a request for what it is.
var (
	errUnsupportedMethod = errors.New("TRACE and CONNECT are not sent: they are no requests for a page")
	errMethodNeedsHTTP   = errors.New("only http and https are fetched by another method than GET")
	errUnexpectedBody    = errors.New("GET and HEAD are sent without a body, which would mean nothing (RFC 9110, section 9.3.1): use POST")
)

// storageRequest returns how r asks for its URL, nil if by GET. A body has at most so
// many bytes.
func storageRequest(r *colly.Request, maxBytes int64) (*storage.NonGETRequest, error) {
	body, err := readRequestBody(r, maxBytes)
	if err != nil {
		return nil, err
	}
	switch r.Method {
	case http.MethodTrace, http.MethodConnect:
		return nil, errUnsupportedMethod
	case http.MethodGet, http.MethodHead, "":
		if len(body) > 0 {
			return nil, errUnexpectedBody
		}
	}
	if r.Method == http.MethodGet || r.Method == "" {
		return nil, nil
	}
	return &storage.NonGETRequest{Method: r.Method, Body: body}, nil
}

// readRequestBody reads the body of r, from its beginning if it knows how.
func readRequestBody(r *colly.Request, maxBytes int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if s, ok := r.Body.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("the body of the request cannot be read: %w", err)
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("the body of the request cannot be read: %w", err)
	}
	if int64(len(body)) > maxBytes {
		return nil, fmt.Errorf("the body of the request is longer than %d bytes: see Collector.MaxRequestBody", maxBytes)
	}
	return body, nil
}

// isSameRequest reports whether a and b ask for a URL in the same way.
func isSameRequest(a, b *storage.NonGETRequest) bool {
	return a.MethodOrGet() == b.MethodOrGet() && (a == nil || b == nil || bytes.Equal(a.Body, b.Body))
}

// isSettableBodyHeader reports whether a header is of the body of a request, and the user's
// to set for one that may have a body.
func isSettableBodyHeader(name string, r *storage.NonGETRequest) bool {
	return r != nil && r.Method != http.MethodHead && strings.HasPrefix(name, "Content-") && name != "Content-Length"
}
