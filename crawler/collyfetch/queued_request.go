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
	"github.com/decorum-crawler/decorum/storage"
)

// Baggage is what a request takes along through the queue and over restarts:
// the JSON of it is the Context of its storage.Entry.
type baggage struct {
	Collector string         `json:"collector,omitempty"` // as it joined; empty: the first
	Values    map[string]any `json:"values,omitempty"`    // of the colly.Context
	Ints      []string       `json:"ints,omitempty"`      // those of Values that are int, for which JSON has no type
	Header    http.Header    `json:"header,omitempty"`    // beyond the collector's own
	Host      string         `json:"host,omitempty"`      // which alone is told what of Header is secret
	Secure    bool           `json:"secure,omitempty"`    // and over https alone
}

// pack returns the baggage of a request for u of the collector of that name, with
// headers beyond the collector's own; nil if it has none. It returns an error if it
// holds a value that would not come back as it was, or too much.
func pack(name string, u decorum.URL, ctx *colly.Context, extra http.Header) ([]byte, error) {
	b := baggage{Collector: name, Values: map[string]any{}, Header: extra}
	ctx.ForEach(func(k string, v any) any {
		if k != tokenHeader {
			b.Values[k] = v
		}
		return nil
	})
	for k, v := range b.Values {
		if _, isInt := v.(int); isInt {
			b.Ints = append(b.Ints, k)
		}
	}
	slices.Sort(b.Ints)
	if b.Collector == "" && len(b.Values) == 0 && len(b.Header) == 0 {
		return nil, nil
	}
	if len(b.Header[secretHeader]) > 0 {
		b.Host, b.Secure = u.Origin().Host(), u.Origin().Scheme() == "https"
	}
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("the context of the request cannot be kept: %w", err)
	}
	if len(data) > storage.MaxContext {
		return nil, fmt.Errorf("the context of the request has %d bytes as JSON; at most %d are kept", len(data), storage.MaxContext)
	}
	return data, b.returns(data)
}

// returns reports whether what was packed comes back as it was.
func (b *baggage) returns(data []byte) error {
	back, err := unpack(data)
	if err != nil {
		return err
	}
	for k, v := range b.Values {
		if !reflect.DeepEqual(back.Values[k], v) {
			return fmt.Errorf("the context value %q is a %T, which cannot be kept in the queue: put strings, numbers (int, float64), bools, []any or map[string]any", k, v)
		}
	}
	for k, v := range b.Header {
		if !slices.Equal(back.Header[k], v) {
			return fmt.Errorf("the header %s holds bytes that are no UTF-8, and cannot be kept in the queue", k)
		}
	}
	return nil
}

// unpack returns the baggage that pack made; none, with an error, if it did not.
func unpack(data []byte) (baggage, error) {
	var b baggage
	if len(data) == 0 {
		return b, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return baggage{}, err
	}
	for _, k := range b.Ints {
		if f, ok := b.Values[k].(float64); ok {
			b.Values[k] = int(f)
		}
	}
	return b, nil
}

// context returns the colly.Context that was packed.
func (b *baggage) context() *colly.Context {
	ctx := colly.NewContext()
	for k, v := range b.Values {
		ctx.Put(k, v)
	}
	return ctx
}

// secretHeader is told only to the host that a callback tells it, and to none
// that this one redirects to, as with net/http; nor in the clear what was for https.
const secretHeader = "Authorization"

// headerFor returns the headers that were packed, as far as they are for what t is
// for: a redirect leads to hosts that may not know all of them, and to a request
// without a body.
func (b *baggage) headerFor(t crawler.Ticket) http.Header {
	h := extraHeader(b.Header, t.Request())
	if to := t.URL().Origin(); b.Host != to.Host() || b.Secure && to.Scheme() != "https" {
		h.Del(secretHeader)
	}
	return h
}

// beyond returns what of the headers of a request of m is the user's to set, and not
// the collector's own.
func beyond(m *colly.Collector, h http.Header, asked *storage.Request) http.Header {
	extra := extraHeader(h, asked)
	if m.Headers != nil {
		maps.DeleteFunc(extra, func(k string, v []string) bool { return slices.Equal((*m.Headers)[k], v) })
	}
	return extra
}

// headerOf returns the headers that every request of m has.
func headerOf(m *colly.Collector) http.Header {
	if m.Headers == nil {
		return http.Header{}
	}
	return m.Headers.Clone()
}

// extraHeader returns what of the headers of a request is the user's to set: what
// may go with every request (see CheckHeader), and the secret for one host. HTTP
// does not mind the case of names, and so all get the usual one. What is said of a
// body is for a request that may have one.
func extraHeader(h http.Header, asked *storage.Request) http.Header {
	extra := make(http.Header, len(h))
	for name, values := range h {
		name = textproto.CanonicalMIMEHeaderKey(name)
		free := name == secretHeader || CheckHeader(name, "") == nil || describes(name, asked)
		if free && !(name == "Accept" && slices.Equal(values, []string{"*/*"})) {
			extra[name] = values
		}
	}
	return extra
}
