package httpfetch

import (
	"context"
	"io"
	"net/http"

	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
)

// maxBufferableBody returns the length in bytes of the longest body that is kept in memory: BodyMemory
// must be able to hold it alone, along with its raw bytes if exchanges are captured.
func (cfg Config) maxBufferableBody() int64 {
	if cfg.CaptureExchanges {
		return cfg.BodyMemory.MaxBodyLen(2) - maxWireOverhead
	}
	return cfg.BodyMemory.MaxBodyLen(1)
}

// inMemoryBodyLimit returns how many bytes of the ticket's body are kept in memory.
func (t *ticketedClient) inMemoryBodyLimit(ticket crawler.Ticket) int64 {
	return min(ticket.BodyLimit(t.cfg.MaxBody), t.cfg.maxBufferableBody())
}

// openMemoryShareAndReserve opens the visit's share of BodyMemory. It reserves all memory that the
// visit may need before the request is sent in two cases: the request is unsafe, and so must not end
// for lack of memory, or an earlier attempt ended for lack of memory.
func (t *ticketedClient) openMemoryShareAndReserve(ctx context.Context, p *roundTrip) error {
	t.cfg.BodyMemory.OpenShare(&p.memoryShare, p.ticket.URL().String())
	total := 2 * t.inMemoryBodyLimit(p.ticket) // a growing body has two buffers
	if p.ticket.StreamsBody() {
		total = bodymem.MaxSpoolBytesForBody(t.inMemoryBodyLimit(p.ticket))
	}
	if t.cfg.CaptureExchanges {
		total += 2 * (t.inMemoryBodyLimit(p.ticket) + maxWireOverhead)
	}
	return p.memoryShare.ReserveAheadIfNeeded(ctx, total, !p.ticket.Request().IsSafe())
}

// retainBodyMemory keeps the body of the response and the captured bytes reserved until the visit is
// over. It releases the memory that decoding took.
func (p *roundTrip) retainBodyMemory() {
	var n int64
	if p.response != nil {
		n = int64(cap(p.response.Body))
	}
	if p.response != nil && p.bodySpool != nil {
		n += p.bodySpool.ReservedBytes()
		p.ticket.SetSpooledBody(p.bodySpool)
	}
	if p.recorder != nil {
		n += p.recorder.reservedBytes
	}
	p.ticketHoldsShare = true
	p.memoryShare.ShrinkTo(n)
	p.ticket.RetainBodyMemoryForVisit(&p.memoryShare)
}

// readSitemapIntoSpool reads the body of a sitemap into p.bodySpool. It returns how many bytes the
// spool holds, uncompressed, and whether the body was cut.
func (t *ticketedClient) readSitemapIntoSpool(ctx context.Context, r io.Reader,
	p *roundTrip) (n int64, truncated bool, err error) {
	stored := t.cfg.BodyMemory.MaxBodyLen(1)
	if t.cfg.CaptureExchanges {
		stored = t.cfg.BodyMemory.MaxBodyLen(2)
	}
	if p.bodySpool, err = p.memoryShare.NewCompressedSpool(ctx, stored); err != nil {
		return 0, false, err
	}
	truncated, err = p.bodySpool.Fill(r, p.ticket.BodyLimit(t.cfg.MaxBody))
	return p.bodySpool.Len(), truncated, err
}

// declaredBodyLength returns the length of an unencoded body according to its header, at most limit.
// It returns 0 if the header does not say.
func declaredBodyLength(res *http.Response, limit int64) int64 {
	if res.ContentLength <= 0 || res.Header["Content-Length"] == nil {
		return 0
	}
	return min(res.ContentLength, limit)
}

// peekDecoderWindowSize returns how many bytes the decoder of coding will keep, according to the
// first bytes of src. It returns 0 for codings whose decoders keep little.
func peekDecoderWindowSize(coding string, src *decodeStageReader) int64 {
	switch coding {
	case "br":
		b, err := src.Peek(1)
		if err != nil {
			return 0
		}
		return 1 << brotliWindowBits(b[0])
	case "zstd":
		b, _ := src.Peek(zstd.HeaderMaxSize)
		var h zstd.Header
		if h.Decode(b) != nil || h.Skippable {
			return maxZstdWindow
		}
		return int64(min(h.WindowSize, maxZstdWindow)) + 2*maxZstdBlock
	}
	return 0
}

// maxZstdBlock is the largest size of a zstd block, in bytes.
const maxZstdBlock = 128 << 10

// brotliWindowBits returns the binary logarithm of the window size of a brotli stream whose first
// byte is b (RFC 7932, section 9.1).
func brotliWindowBits(b byte) int {
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
