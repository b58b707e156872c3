package collyfetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"
	"strings"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/storage"
)

// queuedRequestMetadata is the part of a request that only callbacks and this package use. It is kept
// in the queue and over restarts: its JSON is the CallbackData of the request's storage.Entry.
type queuedRequestMetadata struct {
	CollectorName          string         `json:"collector,omitempty"` // "": the Collector itself
	ContextValues          map[string]any `json:"values,omitempty"`    // of the colly.Context
	IntValueKeys           []string       `json:"ints,omitempty"`      // keys of int ContextValues
	Header                 http.Header    `json:"header,omitempty"`    // headers that the collector does not set itself
	SecretHeadersHost      string         `json:"host,omitempty"`      // the only host that gets secretHeader
	SecretHeadersHTTPSOnly bool           `json:"secure,omitempty"`    // the host gets it over https only
}

// encodeRequestMetadata returns the metadata of a request for u by the collector called name, with the
// headers that the collector does not set itself; nil if there is nothing to keep. It returns an
// error if a value would not decode to itself, or the result exceeds storage.MaxCallbackDataBytes.
func encodeRequestMetadata(name string, u decorum.URL, ctx *colly.Context, extra http.Header) ([]byte, error) {
	b := queuedRequestMetadata{CollectorName: name, ContextValues: map[string]any{}, Header: extra}
	ctx.ForEach(func(k string, v any) any {
		if k != leaseTokenHeader {
			b.ContextValues[k] = v
		}
		return nil
	})
	for k, v := range b.ContextValues {
		// JSON has one type for numbers, so the keys of ints are kept separately.
		if _, isInt := v.(int); isInt {
			b.IntValueKeys = append(b.IntValueKeys, k)
		}
	}
	slices.Sort(b.IntValueKeys)
	if b.CollectorName == "" && len(b.ContextValues) == 0 && len(b.Header) == 0 {
		return nil, nil
	}
	// Credentials stay with this host, and with https if it is used now.
	if len(b.Header[secretHeader]) > 0 {
		b.SecretHeadersHost, b.SecretHeadersHTTPSOnly = u.Origin().Host(), u.Origin().Scheme() == "https"
	}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("the context of the request cannot be kept: %w", err)
	}
	if len(data) > storage.MaxCallbackDataBytes {
		return nil, fmt.Errorf("the context of the request has %d bytes as JSON; at most %d are kept", len(data),
			storage.MaxCallbackDataBytes)
	}
	return data, b.checkLosslessEncoding(data)
}

// checkLosslessEncoding returns an error if data, the encoding of b, does not decode to b.
func (b *queuedRequestMetadata) checkLosslessEncoding(data []byte) error {
	decoded, err := decodeRequestMetadata(data)
	if err != nil {
		return err
	}
	for k, v := range b.ContextValues {
		if !reflect.DeepEqual(decoded.ContextValues[k], v) {
			return fmt.Errorf("the context value %q is a %T, which cannot be kept in the queue: put strings, "+
				"numbers (int, float64), bools, []any or map[string]any", k, v)
		}
	}
	for k, v := range b.Header {
		if !slices.Equal(decoded.Header[k], v) {
			return fmt.Errorf("the header %s is not valid UTF-8, and cannot be kept in the queue", k)
		}
	}
	return nil
}

// decodeRequestMetadata decodes the result of encodeRequestMetadata. For any other data it returns an
// error and empty metadata.
func decodeRequestMetadata(data []byte) (queuedRequestMetadata, error) {
	var b queuedRequestMetadata
	if len(data) == 0 {
		return b, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return queuedRequestMetadata{}, err
	}
	for _, k := range b.IntValueKeys {
		if f, ok := b.ContextValues[k].(float64); ok {
			b.ContextValues[k] = int(f)
		}
	}
	return b, nil
}

// collyContext returns a colly.Context with the values of the request.
func (b *queuedRequestMetadata) collyContext() *colly.Context {
	ctx := colly.NewContext()
	for k, v := range b.ContextValues {
		ctx.Put(k, v)
	}
	return ctx
}

// secretHeader is sent only to the host for which a callback set it, and not to hosts that this one
// redirects to, as in net/http. If it was set for https, it is not sent over http.
const secretHeader = "Authorization"

// headerFor returns the headers that may be sent for t. A redirect may have led to a host that must
// not get all of them, or to a request without a body.
func (b *queuedRequestMetadata) headerFor(t crawler.Ticket) http.Header {
	h := filterAllowedHeaders(b.Header, t.Request())
	if to := t.URL().Origin(); b.SecretHeadersHost != to.Host() || b.SecretHeadersHTTPSOnly && to.Scheme() != "https" {
		h.Del(secretHeader)
	}
	return h
}

// headerWithoutCollectorDefaults returns the headers of a request that a program may set and that m
// does not add to every request anyway.
func headerWithoutCollectorDefaults(m *colly.Collector, h http.Header, request *storage.NonGETRequest) http.Header {
	extra := filterAllowedHeaders(h, request)
	if m.Headers != nil {
		maps.DeleteFunc(extra, func(k string, v []string) bool { return slices.Equal((*m.Headers)[k], v) })
	}
	return extra
}

// filterAllowedHeaders returns the headers that a program may set: those that httpheader.CheckCustom
// allows, secretHeader, and headers about a body if the request may have one. Names of headers are
// case-insensitive in HTTP, so the result has their canonical form.
func filterAllowedHeaders(h http.Header, request *storage.NonGETRequest) http.Header {
	extra := make(http.Header, len(h))
	for name, values := range h {
		name = textproto.CanonicalMIMEHeaderKey(name)
		allowed := name == secretHeader || httpheader.CheckCustom(name, "") == nil ||
			isSettableBodyHeader(name, request)
		if allowed && !(name == "Accept" && slices.Equal(values, []string{"*/*"})) {
			extra[name] = values
		}
	}
	return extra
}

// Errors of requests that cannot be queued.
var (
	errUnsupportedMethod = errors.New("TRACE and CONNECT are not sent: they do not request a page")
	errMethodNeedsHTTP   = errors.New("only http and https URLs can be requested with a method other than GET")
	errUnexpectedBody    = errors.New("GET and HEAD are sent without a body, which would have no meaning (RFC 9110, " +
		"section 9.3.1): use POST")
)

// storageRequest returns the method and body of r, or nil for a GET. It returns an error for a method
// or body that is not sent, or a body of more than maxBytes.
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

// readRequestBody reads the body of r, from its beginning if it is an io.Seeker.
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
		return nil, fmt.Errorf("the body of the request is longer than %d bytes: see Collector.MaxRequestBody",
			maxBytes)
	}
	return body, nil
}

// isSameRequest reports whether a and b have the same method and body.
func isSameRequest(a, b *storage.NonGETRequest) bool {
	return a.MethodOrGet() == b.MethodOrGet() && (a == nil || b == nil || bytes.Equal(a.Body, b.Body))
}

// isSettableBodyHeader reports whether a header describes the body of a request, and a program may set
// it because r may have a body.
func isSettableBodyHeader(name string, r *storage.NonGETRequest) bool {
	return r != nil && r.Method != http.MethodHead && strings.HasPrefix(name, "Content-") && name != "Content-Length"
}
