package bodymem

import (
	"context"
	"io"
	"runtime"
)

const (
	// minBufferSize is the smallest capacity of a buffer made by this package.
	minBufferSize = 4 << 10
	// maxPresize bounds the bytes that are reserved for the announced length of a body before they
	// arrive: a server that announces a long body and sends it slowly must not keep memory from
	// other visits.
	maxPresize = 256 << 10
	// growthFactor is by how much a buffer grows at a time towards the announced length.
	growthFactor = 4
	// eofSlack is the extra space that lets a read find the end of a body of the announced length.
	eofSlack = 512
	// minReusedBuffer and maxReusedBuffer bound the buffers that visits use one after the other: most pages
	// fit into the smaller one, and a few long pages do not make all buffers long.
	minReusedBuffer, maxReusedBuffer = 32 << 10, 512 << 10
)

// TakeBuffer returns an empty buffer for a body of about n bytes, 0 if that is unknown: the buffer of a
// visit that is over, or a new one. It is not reserved: ReadAll does that. Close gives it to another visit,
// so nothing may use the body afterwards.
func (s *VisitShare) TakeBuffer(n int64) []byte {
	n = min(max(n+eofSlack, minReusedBuffer), maxReusedBuffer)
	b, ok := s.memory.buffers.Get().(*[]byte)
	if !ok {
		b = new([]byte)
	}
	if int64(cap(*b)) < n {
		*b = make([]byte, 0, n)
	}
	s.buffer = b
	return *b
}

// ReplaceBuffer says that the body is in b, because it outgrew the buffer of TakeBuffer. Close then gives b to
// another visit, unless it is very long.
func (s *VisitShare) ReplaceBuffer(b []byte) {
	if 0 < cap(b) && cap(b) <= maxReusedBuffer {
		*s.buffer = b[:0]
	}
}

// ReadAll reads r to its end, but at most limit bytes, and reports whether more bytes follow. size
// is the announced length of the body, 0 if it is unknown. ReadAll reserves part of size before it
// reads the first byte, and more as the body arrives. It reads into buf as long as the body fits.
// The caller must call ShrinkTo afterwards.
//
// ReadAll returns what it has read along with an error. It returns a *FullError if the visit gets
// no memory.
func (s *VisitShare) ReadAll(
	ctx context.Context, r io.Reader, limit, size int64, buf []byte,
) (body []byte, more bool, err error) {
	b := bodyBuffer{share: s, ctx: ctx, bytes: buf[:0], limit: limit}
	if size > 0 {
		b.announcedLen = min(size+eofSlack, limit)
	}
	// The first reservation covers the first bytes of the visit, which rarely wait.
	b.reserved = max(min(b.announcedLen, maxPresize), firstBytes)
	if err := s.Reserve(ctx, b.reserved); err != nil {
		return nil, false, err
	}
	for {
		free := b.freeTail()
		if len(free) == 0 && int64(len(b.bytes)) == limit {
			more, err := hasMore(r)
			return b.bytes, more, err
		}
		if len(free) == 0 {
			if err := b.grow(); err != nil {
				return b.bytes, false, err
			}
			runtime.Gosched() // a long body takes much computation: see goschedReader
			continue
		}
		n, err := r.Read(free)
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err == io.EOF {
			return b.bytes, false, nil
		}
		if err != nil {
			return b.bytes, false, err
		}
	}
}

// A bodyBuffer holds the body that is being read. It reserves its capacity or, while it uses the
// caller's buffer, the bytes in use.
type bodyBuffer struct {
	share        *VisitShare
	ctx          context.Context
	bytes        []byte
	limit        int64 // of bytes
	announcedLen int64 // expected length with slack, at most limit; 0: unknown
	reserved     int64 // bytes reserved in share
}

// freeTail returns the free part of the buffer that is reserved. If it is empty, the buffer must grow.
func (b *bodyBuffer) freeTail() []byte {
	return b.bytes[len(b.bytes):min(int64(cap(b.bytes)), b.reserved, b.limit)]
}

// grow makes space for more bytes: it reserves more of the caller's buffer, or replaces the buffer
// by a larger one.
func (b *bodyBuffer) grow() error {
	full := int64(cap(b.bytes))
	if b.reserved < full { // this is the caller's buffer
		more := min(b.reserved, full-b.reserved)
		b.reserved += more
		return b.share.Reserve(b.ctx, more)
	}
	next := max(2*full, minBufferSize)
	if b.announcedLen > full {
		next = min(b.announcedLen, max(maxPresize, growthFactor*full))
	}
	next = min(next, b.limit)
	// Both buffers exist while the bytes are copied.
	if need := full + next - b.reserved; need > 0 {
		if err := b.share.Reserve(b.ctx, need); err != nil {
			return err
		}
		b.reserved += need
	}
	b.bytes = append(make([]byte, 0, next), b.bytes...)
	if next < b.reserved {
		b.share.Release(b.reserved - next)
		b.reserved = next
	}
	return nil
}

// hasMore reports whether r has another byte, which it consumes.
func hasMore(r io.Reader) (bool, error) {
	var one [1]byte
	switch _, err := io.ReadFull(r, one[:]); err {
	case nil:
		return true, nil
	case io.EOF:
		return false, nil
	default:
		return false, err
	}
}
