package collyfetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
)

// A collyTransport is the transport under a collector with callbacks. It lets out the
// pages in hand, by the httpfetch.Fetcher and with their tickets, and nothing else.
type collyTransport struct{ collector *Collector }

// Reasons to refuse a request.
var (
	errNotJoined         = errors.New("the collector is a Clone that has not been joined to the crawl: see Collector.JoinCollector")
	errUserAgentChanged  = errors.New("the crawl has one User-Agent, which callbacks must leave as it is")
	errTransportReplaced = errors.New("the transport under the collector was replaced, and knows of no ticket")
)

// RoundTrip implements http.RoundTripper.
func (d *collyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := d.collector.findCallbackRunByHeader(req.Header)
	if r == nil {
		return nil, unticketedError(req)
	}
	delete(req.Header, leaseTokenHeader) // callbacks see the same map
	r.reachedTransport = true
	if agent := req.Header.Get("User-Agent"); agent != d.collector.fetcher.UserAgent() {
		return nil, &decorum.Error{Op: "visit", URL: r.ticket.URL().String(), Kind: decorum.Invalid, Err: errUserAgentChanged}
	}
	visit := r.currentContext()
	ctx := visit
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		ctx = httptrace.WithClientTrace(ctx, trace)
	}
	res, err := d.collector.fetcher.FetchWithHeader(ctx, r.ticket, filterAllowedHeaders(req.Header, r.ticket.Request()))
	switch {
	case errors.Is(err, decorum.NotDue), errors.Is(err, decorum.LocalFailure) && !errors.Is(err, decorum.InDoubt),
		err != nil && visit.Err() != nil:
		r.fetchOrCollyErr = err
		panic(errStopCoroutine) // no news of the page: it will be asked for again
	case err != nil:
		return nil, err
	}
	r.response = res
	r.ticket.ChargeBodyCopy(len(res.Body)) // colly copies it
	if !r.pauseCoroutine(struct{}{}) {
		panic(errStopCoroutine)
	}
	return collyResponse(req, res), nil
}

// unticketedError says why a request is not let out that is for no page in hand.
func unticketedError(req *http.Request) error {
	err := errNotJoined
	if why := req.Header[refusalHeader]; len(why) > 0 {
		err = errors.New(why[0])
	}
	return &decorum.Error{Op: "visit", URL: req.URL.String(), Kind: decorum.Unticketed, Err: err}
}

// originalStatusHeader keeps a status that colly would take for an error.
const originalStatusHeader = "decorum status"

// collyResponse returns the answer for colly. It has been decoded, whatever its header
// says of gzip. A status of 203 to 299, which colly would take for an error, is
// shown as 200 until restoreStatus sees it.
func collyResponse(req *http.Request, res *decorum.Response) *http.Response {
	h, status := res.Header.Clone(), res.Status
	if status/100 == 2 && status >= http.StatusNonAuthoritativeInfo {
		h[originalStatusHeader] = []string{strconv.Itoa(status)}
		status = http.StatusOK
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Request: req, Uncompressed: true,
		Body: io.NopCloser(bytes.NewReader(res.Body)), ContentLength: int64(len(res.Body)),
	}
}

// restoreStatus is the first callback for a response: it gives the status back
// that collyResponse replaced.
func restoreStatus(r *colly.Response) {
	if original := (*r.Headers)[originalStatusHeader]; len(original) > 0 {
		r.StatusCode, _ = strconv.Atoi(original[0])
		delete(*r.Headers, originalStatusHeader)
	}
}

// canceledContext returns the context of every request of a collector with
// callbacks, and of its Clones. It is done: whatever transport a program puts in
// the place of collyTransport, it sends nothing. collyTransport uses the context of the visit.
func canceledContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&decorum.Error{Op: "visit", Kind: decorum.Unticketed, Err: errTransportReplaced})
	return ctx
}
