package collyfetch

import (
	"context"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// largest returns how long a body may be that is in memory: as long as Bodies can hold
// alone, beside its bytes as they came if these are kept.
func (cfg Config) largest() int64 {
	if cfg.Capture {
		return cfg.Bodies.Largest(2) - around
	}
	return cfg.Bodies.Largest(1)
}

// bodyLimit returns how many bytes of the body of a ticket's answer are kept in memory.
func (t *turnstile) bodyLimit(ticket crawler.Ticket) int64 {
	return min(ticket.Limit(t.cfg.MaxBody), t.cfg.largest())
}

// reserveAhead opens the share of a visit. Memory is reserved before the request is sent
// if the request is not safe, which must not be ended for want of memory, or if an earlier
// visit was.
func (t *turnstile) reserveAhead(ctx context.Context, p *passage) error {
	t.cfg.Bodies.Open(&p.share, p.ticket.URL().String())
	whole := 2 * t.bodyLimit(p.ticket) // while it grows there are two
	if p.ticket.Streams() {
		whole = bodymem.SpoolBytes(t.bodyLimit(p.ticket))
	}
	if t.cfg.Capture {
		whole += 2 * (t.bodyLimit(p.ticket) + around)
	}
	return p.share.ReserveAhead(ctx, whole, !p.ticket.Request().IsSafe())
}

// holdBody has the body of the response, if there is one, and what was captured, held
// until the visit is over. What decoding it took is given back.
func (p *passage) holdBody() {
	var n int64
	if p.response != nil {
		n = int64(cap(p.response.Body))
	}
	if p.response != nil && p.spool != nil {
		n += p.spool.Held()
		p.ticket.KeepBody(p.spool)
	}
	if p.tape != nil {
		n += p.tape.held
	}
	p.held = true
	p.share.Finish(n)
	p.ticket.HoldBody(&p.share)
}

// readSpool reads the body of a sitemap, n bytes, into a spool.
func (t *turnstile) readSpool(ctx context.Context, r io.Reader, p *passage) (n int64, truncated bool, err error) {
	stored := t.cfg.Bodies.Largest(1)
	if t.cfg.Capture {
		stored = t.cfg.Bodies.Largest(2)
	}
	if p.spool, err = p.share.NewSpool(ctx, stored); err != nil {
		return 0, false, err
	}
	truncated, err = p.spool.Fill(r, p.ticket.Limit(t.cfg.MaxBody))
	return p.spool.Len(), truncated, err
}

// promised returns how long a body is that is not encoded, as its header says; 0: it does
// not.
func promised(res *http.Response, limit int64) int64 {
	if res.ContentLength <= 0 || res.Header["Content-Length"] == nil {
		return 0
	}
	return min(res.ContentLength, limit)
}

// windowOf returns how many bytes of what it has decoded a decoder keeps, as the beginning
// of the coded bytes says. It reports nothing for codings that keep little.
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

// zstdBlock is how long a block of zstd is at most.
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
