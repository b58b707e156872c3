package collyfetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"

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

// collectorDefaultHeaders returns the headers that every request of m has.
func collectorDefaultHeaders(m *colly.Collector) http.Header {
	if m.Headers == nil {
		return http.Header{}
	}
	return m.Headers.Clone()
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
