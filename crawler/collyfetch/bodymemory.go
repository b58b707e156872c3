package collyfetch

import (
	"context"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// largest returns the length of the longest body in memory: Bodies must hold it alone,
// and also its raw bytes if these are kept.
func (cfg Config) largest() int64 {
	if cfg.Capture {
		return cfg.Bodies.MaxBodyLen(2) - around
	}
	return cfg.Bodies.MaxBodyLen(1)
}

// bodyLimit returns how many bytes of the body of a ticket's answer are kept in memory.
func (t *turnstile) bodyLimit(ticket crawler.Ticket) int64 {
	return min(ticket.Limit(t.cfg.MaxBody), t.cfg.largest())
}

// reserveAhead opens the share of a visit. It reserves memory before the visit sends
// its request, if the request is not safe, and so must not be ended for want of memory,
// or if an earlier visit was ended.
func (t *turnstile) reserveAhead(ctx context.Context, p *passage) error {
	t.cfg.Bodies.OpenShare(&p.share, p.ticket.URL().String())
	whole := 2 * t.bodyLimit(p.ticket) // a growing body has two buffers
	if p.ticket.Streams() {
		whole = bodymem.MaxSpoolBytes(t.bodyLimit(p.ticket))
	}
	if t.cfg.Capture {
		whole += 2 * (t.bodyLimit(p.ticket) + around)
	}
	return p.share.ReserveAhead(ctx, whole, !p.ticket.Request().IsSafe())
}

// holdBody keeps the body of the response, and the captured bytes, reserved until the
// visit is over. It gives back the memory that decoding took.
func (p *passage) holdBody() {
	var n int64
	if p.response != nil {
		n = int64(cap(p.response.Body))
	}
	if p.response != nil && p.spool != nil {
		n += p.spool.ReservedBytes()
		p.ticket.KeepBody(p.spool)
	}
	if p.tape != nil {
		n += p.tape.held
	}
	p.held = true
	p.share.ShrinkTo(n)
	p.ticket.HoldBody(&p.share)
}

// readSpool reads the body of a sitemap, n bytes, into a spool.
func (t *turnstile) readSpool(ctx context.Context, r io.Reader, p *passage) (n int64, truncated bool, err error) {
	stored := t.cfg.Bodies.MaxBodyLen(1)
	if t.cfg.Capture {
		stored = t.cfg.Bodies.MaxBodyLen(2)
	}
	if p.spool, err = p.share.NewSpool(ctx, stored); err != nil {
		return 0, false, err
	}
	truncated, err = p.spool.Fill(r, p.ticket.Limit(t.cfg.MaxBody))
	return p.spool.Len(), truncated, err
}

// promised returns the length of an unencoded body by its header; 0 if the header does
// not say.
func promised(res *http.Response, limit int64) int64 {
	if res.ContentLength <= 0 || res.Header["Content-Length"] == nil {
		return 0
	}
	return min(res.ContentLength, limit)
}

// windowOf returns how many decoded bytes a decoder keeps, by the first of the coded
// bytes. It returns 0 for codings that keep few bytes.
func windowOf(coding string, src *layer) int64 {
	switch coding {
	case "br":
		b, err := src.Peek(1)
		if err != nil {
			return 0
		}
		return 1 << brotliBits(b[0])
	case "zstd":
		b, _ := src.Peek(zstd.HeaderMaxSize)
		var h zstd.Header
		if h.Decode(b) != nil || h.Skippable {
			return zstdWindow
		}
		return int64(min(h.WindowSize, zstdWindow)) + 2*zstdBlock
	}
	return 0
}

// zstdBlock is the largest size of a zstd block.
const zstdBlock = 128 << 10

// brotliBits returns the logarithm of the window of a brotli stream that begins with b
// (RFC 7932, section 9.1).
func brotliBits(b byte) int {
	if b&1 == 0 {
		return 16
	}
	if n := b >> 1 & 7; n != 0 {
		return 17 + int(n)
	}
	if n := b >> 4 & 7; n != 0 {
		return 8 + int(n)
	}
	return 17
}
