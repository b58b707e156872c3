package bodymem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"runtime"

	"github.com/klauspost/compress/s2"
)

const (
	// blockSize is how many bytes of a body are compressed at a time.
	blockSize = 64 << 10
	// chunkSize is how many compressed bytes are reserved at a time.
	chunkSize = 32 << 10
	// spoolOverhead is how many bytes a spool needs besides its chunks, for writing and reading.
	spoolOverhead = 4 * blockSize
)

// A CompressedSpool is a long body, such as a sitemap, that can be read as a stream any number of
// times. It keeps the body compressed, in chunks that are reserved in the share of the visit. It is
// not safe for concurrent use.
type CompressedSpool struct {
	share              *VisitShare
	ctx                context.Context
	writer             *s2.Writer // compresses into chunks; nil after Fill
	chunks             [][]byte   // of chunkSize capacity; all but the last are full
	compressedLen      int64      // bytes in chunks
	maxCompressed      int64      // limit of compressedLen
	hash               hash.Hash  // SHA-256 of the uncompressed body
	uncompressedLength int64      // bytes of the body that are kept
	truncated          bool       // the body exceeded maxCompressed
}

// NewCompressedSpool returns an empty CompressedSpool. limit is how many compressed bytes the whole
// memory can hold: see Budget.MaxBodyLen. It returns a *FullError if the visit gets no memory.
func (s *VisitShare) NewCompressedSpool(ctx context.Context, limit int64) (*CompressedSpool, error) {
	if err := s.Reserve(ctx, spoolOverhead); err != nil {
		return nil, err
	}
	p := &CompressedSpool{share: s, ctx: ctx, maxCompressed: limit, hash: sha256.New()}
	p.writer = s2.NewWriter((*chunkWriter)(p), s2.WriterConcurrency(1), s2.WriterBlockSize(blockSize))
	return p, nil
}

// MaxSpoolBytesForBody returns how many bytes of memory a CompressedSpool takes at most for a body
// of n bytes. An incompressible body grows by a few bytes per block.
func MaxSpoolBytesForBody(n int64) int64 { return n + n/1000 + 2*chunkSize + spoolOverhead }

// Fill reads r to its end, but at most limit bytes, and reports whether more bytes follow. If the
// whole memory cannot hold the compressed body, Fill cuts the body and returns true: see Truncated.
func (p *CompressedSpool) Fill(r io.Reader, limit int64) (more bool, err error) {
	n, err := io.CopyBuffer(struct{ io.Writer }{p}, goschedReader{io.LimitReader(r, limit)}, make([]byte, blockSize))
	if closeErr := p.writer.Close(); err == nil {
		err = closeErr
	}
	p.writer = nil
	switch {
	case errors.Is(err, errSpoolFull):
		p.truncated = true
		return true, nil
	case err != nil || n < limit:
		return false, err
	}
	return hasMore(r)
}

// Write appends b to the body.
func (p *CompressedSpool) Write(b []byte) (int, error) {
	n, err := p.writer.Write(b)
	p.hash.Write(b[:n])
	p.uncompressedLength += int64(n)
	return n, err
}

// Len returns how many bytes of the body are kept.
func (p *CompressedSpool) Len() int64 { return p.uncompressedLength }

// ReservedBytes returns how many bytes are reserved for the CompressedSpool.
func (p *CompressedSpool) ReservedBytes() int64 {
	return int64(len(p.chunks))*chunkSize + spoolOverhead
}

// Truncated reports whether the body was cut because the whole memory could not hold it.
func (p *CompressedSpool) Truncated() bool { return p.truncated }

// SHA256 returns the hash of the part of the body that is kept, uncompressed.
func (p *CompressedSpool) SHA256() [sha256.Size]byte { return [sha256.Size]byte(p.hash.Sum(nil)) }

// Open returns a reader of the uncompressed body, from its beginning.
func (p *CompressedSpool) Open() io.Reader {
	readers := make([]io.Reader, len(p.chunks))
	for i, c := range p.chunks {
		readers[i] = bytes.NewReader(c)
	}
	r := io.Reader(s2.NewReader(io.MultiReader(readers...), s2.ReaderMaxBlockSize(blockSize),
		s2.ReaderAllocBlock(blockSize)))
	return goschedReader{io.LimitReader(r, p.uncompressedLength)}
}

// A goschedReader lets other goroutines run before each read. If few compressed bytes expand to
// many, reading is pure computation: without yielding, a few dozen such bodies would delay every
// other visit by as many time slices each time it becomes runnable.
type goschedReader struct{ io.Reader }

// Read implements io.Reader.
func (y goschedReader) Read(p []byte) (int, error) {
	runtime.Gosched()
	return y.Reader.Read(p)
}

// errSpoolFull ends the compression of a body that the whole memory cannot hold.
var errSpoolFull = errors.New("the body is longer than the memory for all bodies")

// A chunkWriter is the chunks of a CompressedSpool as an io.Writer.
type chunkWriter CompressedSpool

// Write implements io.Writer.
func (p *chunkWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		last := len(p.chunks) - 1
		if last < 0 || len(p.chunks[last]) == chunkSize {
			if p.compressedLen+chunkSize > p.maxCompressed {
				return n, errSpoolFull
			}
			if err := p.share.Reserve(p.ctx, chunkSize); err != nil {
				return n, err
			}
			p.chunks = append(p.chunks, make([]byte, 0, chunkSize))
			last++
		}
		part := b[n:min(len(b), n+chunkSize-len(p.chunks[last]))]
		p.chunks[last] = append(p.chunks[last], part...)
		p.compressedLen += int64(len(part))
		n += len(part)
	}
	return n, nil
}
