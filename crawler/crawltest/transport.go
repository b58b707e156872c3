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

// RoundTrip answers a request without a network, as http.Transport would over
// one: redirects are not followed, gzip that the caller did not ask for is
// undone, and faults come out as the same errors. It waits by time.Timer, so
// that it takes no real time in a bubble, and starts no goroutine. A request
// for a host that the web does not have fails as a name that cannot be
// resolved, and is not logged.
func (w *Web) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	ctx := r.Context()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if host := bareHost(strings.ToLower(r.URL.Host)); w.sites[host] == nil {
		return nil, dialError(host)
	}
	asked, undo := r, false
	if r.Header.Get("Accept-Encoding") == "" && r.Header.Get("Range") == "" && r.Method != http.MethodHead {
		asked, undo = r.WithContext(ctx), true
		asked.Header = r.Header.Clone()
		asked.Header.Set("Accept-Encoding", "gzip")
	}
	e, d := w.begin(asked, r.URL.Scheme, false)
	if err := d.meet(ctx, e); err != nil {
		return nil, err
	}
	return d.response(r, e, undo), nil
}

func dialError(host string) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
}

func resetError() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// meet waits for the head of the answer.
func (d *delivery) meet(ctx context.Context, e *entry) error {
	wait := d.wait
	if d.fault == Hang {
		wait = forever
	}
	if err := sleep(ctx, wait); err != nil {
		e.end(true)
		return err
	}
	if d.fault == Reset {
		e.end(true)
		return resetError()
	}
	e.head(*d)
	return nil
}

// response returns the answer. undo says to decompress it.
func (d *delivery) response(r *http.Request, e *entry, undo bool) *http.Response {
	res := &http.Response{
		Status: statusLine(d.status), StatusCode: d.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, ContentLength: d.length, Request: r,
	}
	if d.length < 0 {
		res.TransferEncoding = []string{"chunked"}
	}
	b := &body{ctx: r.Context(), delivery: d, entry: e, began: time.Now()}
	if d.pieces() == 0 && !d.breaks() {
		e.end(false)
		res.Body = http.NoBody
		return res
	}
	b.stop = context.AfterFunc(b.ctx, func() { e.end(true) })
	res.Body = b
	if undo && d.header.Get("Content-Encoding") == "gzip" {
		res.Body, res.ContentLength, res.Uncompressed = &gunzipped{body: b}, -1, true
		d.header.Del("Content-Encoding")
		d.header.Del("Content-Length")
	}
	return res
}

// A body hands out a delivery's body as the clock allows.
type body struct {
	ctx      context.Context
	delivery *delivery
	entry    *entry
	began    time.Time
	next     int    // the piece that comes after rest
	rest     []byte // of the piece being read
	stop     func() bool
	err      error // for good
}

// Read waits for the next piece if the last one is used up.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.err = b.ready(); b.err != nil {
		b.finish(true)
		return 0, b.err
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	b.entry.sent(n)
	if len(b.rest) == 0 && b.next == b.delivery.pieces() && !b.delivery.breaks() {
		b.err = io.EOF
		b.finish(b.delivery.fault == BadGzip)
		return n, nil
	}
	return n, nil
}

// ready waits for something to read, or for how the body breaks off.
func (b *body) ready() error {
	switch {
	case b.ctx.Err() != nil:
		return context.Cause(b.ctx)
	case len(b.rest) > 0:
		return nil
	case b.next == b.delivery.pieces():
		return b.broken()
	}
	data, at := b.delivery.piece(b.next)
	if err := sleep(b.ctx, at-time.Since(b.began)); err != nil {
		return err
	}
	b.rest, b.next = data, b.next+1
	return nil
}

// broken returns how a body breaks off.
func (b *body) broken() error {
	switch b.delivery.fault {
	case Stall:
		return sleep(b.ctx, forever)
	case ResetBody:
		return resetError()
	}
	return io.ErrUnexpectedEOF
}

// Close ends the exchange, too early if the body was not read to its end.
func (b *body) Close() error {
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
	}
	b.finish(true)
	return nil
}

func (b *body) finish(broken bool) {
	b.stop()
	b.entry.end(broken)
}

// gunzipped decompresses a body, beginning with the first Read.
type gunzipped struct {
	*body
	zr  *gzip.Reader
	err error
}

// Read decompresses.
func (g *gunzipped) Read(p []byte) (int, error) {
	if g.zr == nil && g.err == nil {
		g.zr, g.err = gzip.NewReader(g.body)
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.zr.Read(p)
}

// forever is longer than any client waits.
const forever = 100 * 365 * 24 * time.Hour

// sleep waits for d or for the end of ctx, and returns why it ended too early.
func sleep(ctx context.Context, d time.Duration) error {
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
