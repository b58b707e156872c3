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

// queuedRequestMetadata is what a request takes along through the queue and over restarts:
// its JSON is the CallbackData of its storage.Entry.
type queuedRequestMetadata struct {
	CollectorName          string         `json:"collector,omitempty"` // as it joined; empty: the first
	ContextValues          map[string]any `json:"values,omitempty"`    // of the colly.Context
	IntValueKeys           []string       `json:"ints,omitempty"`      // those of ContextValues that are int, for which JSON has no type
	Header                 http.Header    `json:"header,omitempty"`    // beyond the collector's own
	SecretHeadersHost      string         `json:"host,omitempty"`      // which alone is told what of Header is secret
	SecretHeadersHTTPSOnly bool           `json:"secure,omitempty"`    // and over https alone
}

// encodeRequestMetadata returns the metadata of a request for u of the collector of that name, with
// headers beyond the collector's own; nil if it has none. It returns an error if it
// holds a value that would not come back as it was, or too much.
func encodeRequestMetadata(name string, u decorum.URL, ctx *colly.Context, extra http.Header) ([]byte, error) {
	b := queuedRequestMetadata{CollectorName: name, ContextValues: map[string]any{}, Header: extra}
	ctx.ForEach(func(k string, v any) any {
		if k != leaseTokenHeader {
			b.ContextValues[k] = v
		}
		return nil
	})
	for k, v := range b.ContextValues {
		if _, isInt := v.(int); isInt {
			b.IntValueKeys = append(b.IntValueKeys, k)
		}
	}
	slices.Sort(b.IntValueKeys)
	if b.CollectorName == "" && len(b.ContextValues) == 0 && len(b.Header) == 0 {
		return nil, nil
	}
	if len(b.Header[secretHeader]) > 0 {
		b.SecretHeadersHost, b.SecretHeadersHTTPSOnly = u.Origin().Host(), u.Origin().Scheme() == "https"
	}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("the context of the request cannot be kept: %w", err)
	}
	if len(data) > storage.MaxCallbackDataBytes {
		return nil, fmt.Errorf("the context of the request has %d bytes as JSON; at most %d are kept", len(data), storage.MaxCallbackDataBytes)
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
			return fmt.Errorf("the context value %q is a %T, which cannot be kept in the queue: put strings, numbers (int, float64), bools, []any or map[string]any", k, v)
		}
	}
	for k, v := range b.Header {
		if !slices.Equal(decoded.Header[k], v) {
			return fmt.Errorf("the header %s holds bytes that are no UTF-8, and cannot be kept in the queue", k)
		}
	}
	return nil
}

// decodeRequestMetadata decodes what encodeRequestMetadata returned. It returns no metadata and
// an error if data is something else.
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

// collyContext returns the colly.Context of the request.
func (b *queuedRequestMetadata) collyContext() *colly.Context {
	ctx := colly.NewContext()
	for k, v := range b.ContextValues {
		ctx.Put(k, v)
	}
	return ctx
}

// secretHeader is told only to the host that a callback tells it, and to none
// that this one redirects to, as with net/http; nor in the clear what was for https.
const secretHeader = "Authorization"

// headerFor returns the headers of the request, as far as they are for what t is
// for: a redirect leads to hosts that may not know all of them, and to a request
// without a body.
func (b *queuedRequestMetadata) headerFor(t crawler.Ticket) http.Header {
	h := filterAllowedHeaders(b.Header, t.Request())
	if to := t.URL().Origin(); b.SecretHeadersHost != to.Host() || b.SecretHeadersHTTPSOnly && to.Scheme() != "https" {
		h.Del(secretHeader)
	}
	return h
}

// headerWithoutCollectorDefaults returns what of the headers of a request of m is the user's to set, and not
// the collector's own.
func headerWithoutCollectorDefaults(m *colly.Collector, h http.Header, request *storage.NonGETRequest) http.Header {
	extra := filterAllowedHeaders(h, request)
	if m.Headers != nil {
		maps.DeleteFunc(extra, func(k string, v []string) bool { return slices.Equal((*m.Headers)[k], v) })
	}
	return extra
}

// filterAllowedHeaders returns what of the headers of a request is the user's to set: what
// may go with every request (see httpheader.CheckCustom), and the secret for one host. HTTP
// does not mind the case of names, and so all get the usual one. What is said of a
// body is for a request that may have one.
func filterAllowedHeaders(h http.Header, request *storage.NonGETRequest) http.Header {
	extra := make(http.Header, len(h))
	for name, values := range h {
		name = textproto.CanonicalMIMEHeaderKey(name)
		allowed := name == secretHeader || httpheader.CheckCustom(name, "") == nil || isSettableBodyHeader(name, request)
		if allowed && !(name == "Accept" && slices.Equal(values, []string{"*/*"})) {
			extra[name] = values
		}
	}
	return extra
}

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
