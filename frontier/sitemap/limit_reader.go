package sitemap

import (
	"bufio"
	"fmt"
	"io"
)

// ratioFreeBytes is how many bytes may come out of a compressed file before their ratio
// to what went in counts: short files of blanks are no bombs.
const ratioFreeBytes = 1 << 20

// A sizeAndRatioLimitReader passes on at most left bytes, and of a compressed file no more than
// ratio times what went in.
type sizeAndRatioLimitReader struct {
	r                     io.Reader
	remaining             int64
	compressedInput       *countingReader // nil: not compressed
	maxDecompressionRatio int64
	totalRead             int64
}

// Read returns ErrLimit instead of the first byte too many.
func (l *sizeAndRatioLimitReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.remaining+1 {
		p = p[:l.remaining+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.remaining {
		n, err = int(l.remaining), ErrLimit
	}
	l.remaining -= int64(n)
	l.totalRead += int64(n)
	if l.compressedInput != nil && l.totalRead > ratioFreeBytes && (l.totalRead-ratioFreeBytes)/l.maxDecompressionRatio > l.compressedInput.n {
		err = fmt.Errorf("ratio of decompression: %w", ErrLimit)
	}
	return n, err
}

// A countingReader counts what is read through it. It is an io.ByteReader so that what
// decompresses takes no more than it needs.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (m *countingReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	return n, err
}

func (m *countingReader) ReadByte() (byte, error) {
	b, err := m.r.ReadByte()
	if err == nil {
		m.n++
	}
	return b, err
}
