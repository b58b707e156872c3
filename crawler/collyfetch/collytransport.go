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

// A collyTransport is the transport of every collector in a crawl. It sends only the requests that
// belong to a callbackRun, through the httpfetch.Fetcher and with their tickets.
type collyTransport struct{ collector *Collector }

// Errors of requests that are refused.
var (
	errNotJoined = errors.New("the collector is a Clone that has not joined the crawl: call " +
		"JoinCollector(name, clone) before the crawl begins")
	errUserAgentChanged  = errors.New("the crawl has one User-Agent, which callbacks must not change")
	errTransportReplaced = errors.New("the collector's transport was replaced by one that does not use tickets")
)

// RoundTrip implements http.RoundTripper.
func (d *collyTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r := d.collector.findCallbackRunByHeader(req.Header)
	if r == nil {
		err := unticketedError(req)
		if errors.Is(err, errNotJoined) { // programs often ignore the error of Visit
			d.collector.warnings.logNotJoined(d.collector, req)
		}
		return nil, err
	}
	// Callbacks share this map, and must not see the token.
	delete(req.Header, leaseTokenHeader)
	r.reachedTransport = true
	if agent := req.Header.Get("User-Agent"); agent != d.collector.fetcher.UserAgent() {
		return nil, &decorum.Error{Op: "visit", URL: r.ticket.URL().String(),
			Kind: decorum.Invalid, Err: errUserAgentChanged}
	}
	// Send the request in the context of the visit, with colly's trace if it is on.
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
		panic(errStopCoroutine) // the error says nothing about the page, which will be requested again
	case err != nil:
		return nil, err
	}
	r.response = res
	r.ticket.ChargeBodyCopy(len(res.Body)) // colly copies the body
	// Wait here until Handle resumes colly, or ReleaseVisitResources ends it.
	if !r.pauseCoroutine(struct{}{}) {
		panic(errStopCoroutine)
	}
	return collyResponse(req, res), nil
}

// unticketedError returns the error of a request that belongs to no callbackRun: why it could not be
// queued, or that its collector has not joined.
func unticketedError(req *http.Request) error {
	err := errNotJoined
	if why := req.Header[refusalHeader]; len(why) > 0 {
		err = errors.New(why[0])
	}
	return &decorum.Error{Op: "visit", URL: req.URL.String(), Kind: decorum.Unticketed, Err: err}
}

// originalStatusHeader is the header in which collyResponse keeps a status that colly would treat
// as an error.
const originalStatusHeader = "decorum status"

// collyResponse returns res for colly. The body is decoded, whatever its header says of gzip. Colly
// would treat a status of 203 to 299 as an error, so it is 200 until restoreStatus restores it.
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

// restoreStatus is the first callback for a response. It restores the status that collyResponse
// replaced.
func restoreStatus(r *colly.Response) {
	if original := (*r.Headers)[originalStatusHeader]; len(original) > 0 {
		r.StatusCode, _ = strconv.Atoi(original[0])
		delete(*r.Headers, originalStatusHeader)
	}
}

// canceledContext returns the context of every request of a collector in a crawl, and of its Clones.
// It is canceled, so that a transport that a program puts in place of collyTransport sends nothing.
// collyTransport uses the context of the visit instead.
func canceledContext() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&decorum.Error{Op: "visit", Kind: decorum.Unticketed, Err: errTransportReplaced})
	return ctx
}
