package crawltest

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// RoundTrip implements http.RoundTripper. It answers a request without a network as http.Transport
// does over one: it follows no redirect, decompresses gzip unless the caller set Accept-Encoding,
// and returns the same errors for faults. It waits with time.Timer, so that it takes no real time
// in a bubble, and starts no goroutine. A request for an unknown host fails as a name that cannot be
// resolved, and is not logged.
func (w *Web) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	ctx := r.Context()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if host := withoutPort(strings.ToLower(r.URL.Host)); w.siteOf(host) == nil {
		return nil, unknownHostError(host)
	}
	// Ask for gzip on the caller's behalf, as http.Transport does.
	sent, decompress := r, false
	if r.Header.Get("Accept-Encoding") == "" && r.Header.Get("Range") == "" && r.Method != http.MethodHead {
		sent, decompress = r.WithContext(ctx), true
		sent.Header = r.Header.Clone()
		sent.Header.Set("Accept-Encoding", "gzip")
	}
	e, d := w.logRequestAndPrepareResponse(sent, r.URL.Scheme, false)
	if err := d.simulateHeaderArrival(ctx, e); err != nil {
		return nil, err
	}
	return d.httpResponse(r, e, decompress), nil
}

func unknownHostError(host string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
}

func resetError() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// simulateHeaderArrival waits until the head of the answer arrives, and records it. It returns the
// error of a fault before the head, or of ctx.
func (d *wireResponse) simulateHeaderArrival(ctx context.Context, e *exchangeRecorder) error {
	wait := d.headerDelay
	if d.fault == Hang {
		wait = forever
	}
	if err := sleepUnlessCanceled(ctx, wait); err != nil {
		e.recordEnd(true)
		return err
	}
	if d.fault == Reset {
		e.recordEnd(true)
		return resetError()
	}
	e.recordResponseHead(*d)
	return nil
}

// httpResponse returns the answer to r. If decompress is set, it decompresses a gzip body.
func (d *wireResponse) httpResponse(r *http.Request, e *exchangeRecorder, decompress bool) *http.Response {
	res := &http.Response{
		Status: statusCodeAndText(d.status), StatusCode: d.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, ContentLength: d.contentLength, Request: r,
	}
	if d.contentLength < 0 {
		res.TransferEncoding = []string{"chunked"}
	}
	// An empty body has ended already; another ends when it is read, closed or canceled.
	b := &pacedBody{ctx: r.Context(), wireResponse: d, entry: e, startedAt: time.Now()}
	if d.bodyPieceCount() == 0 && !d.breaksOff() {
		e.recordEnd(false)
		res.Body = http.NoBody
		return res
	}
	b.stopCancelWatch = context.AfterFunc(b.ctx, func() { e.recordEnd(true) })
	res.Body = b
	if decompress && d.header.Get("Content-Encoding") == "gzip" {
		res.Body, res.ContentLength, res.Uncompressed = &gunzipBody{pacedBody: b}, -1, true
		d.header.Del("Content-Encoding")
		d.header.Del("Content-Length")
	}
	return res
}

// A pacedBody is the body of an answer. Each piece can be read at its time.
type pacedBody struct {
	ctx             context.Context
	wireResponse    *wireResponse
	entry           *exchangeRecorder
	startedAt       time.Time
	nextPieceIndex  int         // the piece after unreadPiece
	unreadPiece     []byte      // the rest of the piece being read
	stopCancelWatch func() bool // stops the function that records the end when ctx is canceled
	err             error       // of all further reads
}

// Read implements io.Reader. It waits for the next piece if the last one has been read.
func (b *pacedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.awaitData(); b.err != nil {
		b.endExchange(true)
		return 0, b.err
	}
	n := copy(p, b.unreadPiece)
	b.unreadPiece = b.unreadPiece[n:]
	b.entry.addBodyBytes(n)
	if len(b.unreadPiece) == 0 && b.nextPieceIndex == b.wireResponse.bodyPieceCount() && !b.wireResponse.breaksOff() {
		b.err = io.EOF
		b.endExchange(b.wireResponse.fault == BadGzip)
		return n, nil
	}
	return n, nil
}

// awaitData waits until unreadPiece has bytes, or returns the error with which the body breaks off.
func (b *pacedBody) awaitData() error {
	switch {
	case b.ctx.Err() != nil:
		return context.Cause(b.ctx)
	case len(b.unreadPiece) > 0:
		return nil
	case b.nextPieceIndex == b.wireResponse.bodyPieceCount():
		return b.stallOrBreakOff()
	}
	data, at := b.wireResponse.bodyPieceAndSendTime(b.nextPieceIndex)
	if err := sleepUnlessCanceled(b.ctx, at-time.Since(b.startedAt)); err != nil {
		return err
	}
	b.unreadPiece, b.nextPieceIndex = data, b.nextPieceIndex+1
	return nil
}

// stallOrBreakOff returns the error of a body that ends in the middle, for StallBody when the request
// is canceled.
func (b *pacedBody) stallOrBreakOff() error {
	switch b.wireResponse.fault {
	case StallBody:
		return sleepUnlessCanceled(b.ctx, forever)
	case ResetBody:
		return resetError()
	}
	return io.ErrUnexpectedEOF
}

// Close implements io.Closer. It ends the exchange, as incomplete unless the body was read to its end.
func (b *pacedBody) Close() error {
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
	}
	b.endExchange(true)
	return nil
}

func (b *pacedBody) endExchange(incomplete bool) {
	b.stopCancelWatch()
	b.entry.recordEnd(incomplete)
}

// A gunzipBody decompresses a pacedBody. It reads nothing before the first Read.
type gunzipBody struct {
	*pacedBody
	zr  *gzip.Reader
	err error
}

// Read implements io.Reader.
func (g *gunzipBody) Read(p []byte) (int, error) {
	if g.zr == nil && g.err == nil {
		g.zr, g.err = gzip.NewReader(g.pacedBody)
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.zr.Read(p)
}

// forever is longer than any client waits.
const forever = 100 * 365 * 24 * time.Hour

// sleepUnlessCanceled waits for d. It returns early with the cause of ctx if ctx is done.
func sleepUnlessCanceled(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
