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
)

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
	b := s.newBodyBuffer(ctx, limit, size)
	b.bytes = buf[:0]
	if err := s.Reserve(ctx, b.reserved); err != nil {
		return nil, false, err
	}
	return b.readAll(r)
}

// ReadAllReusing is ReadAll into a buffer that an earlier visit has used, and that another visit uses
// after Close. Nothing may use the body after Close. A share reads at most one body with it.
func (s *VisitShare) ReadAllReusing(
	ctx context.Context, r io.Reader, limit, size int64,
) (body []byte, more bool, err error) {
	b := s.newBodyBuffer(ctx, limit, size)
	b.pools = &s.memory.buffers
	first := b.pools.roundUp(min(b.announcedLen, maxPresize))
	b.reserved = max(b.reserved, first)
	if err := s.Reserve(ctx, b.reserved); err != nil {
		return nil, false, err
	}
	b.bytes = b.pools.take(first)
	if body, more, err = b.readAll(r); err == nil {
		s.setPooledBuffer(b.bytes)
	}
	return body, more, err
}

// newBodyBuffer returns a bodyBuffer whose first bytes the caller must reserve. The parameters are those
// of ReadAll.
func (s *VisitShare) newBodyBuffer(ctx context.Context, limit, size int64) *bodyBuffer {
	b := &bodyBuffer{share: s, ctx: ctx, limit: limit}
	if size > 0 {
		b.announcedLen = min(size+eofSlack, limit)
	}
	// The first reservation covers the first bytes of the visit, which rarely wait.
	b.reserved = max(min(b.announcedLen, maxPresize), firstBytes)
	return b
}

// readAll reads r into b: see ReadAll.
func (b *bodyBuffer) readAll(r io.Reader) (body []byte, more bool, err error) {
	for {
		free := b.freeTail()
		if len(free) == 0 && int64(len(b.bytes)) == b.limit {
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
	limit        int64        // of bytes
	announcedLen int64        // expected length with slack, at most limit; 0: unknown
	reserved     int64        // bytes reserved in share
	pools        *bufferPools // where bytes come from and go to; nil: the caller keeps them
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
	next = min(b.pools.roundUp(next), b.limit)
	// Both buffers exist while the bytes are copied.
	if need := full + next - b.reserved; need > 0 {
		if err := b.share.Reserve(b.ctx, need); err != nil {
			return err
		}
		b.reserved += need
	}
	last := b.bytes
	b.bytes = append(b.pools.take(next), last...)
	b.pools.put(last)
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
