package sitemap

import (
	"bufio"
	"fmt"
	"io"
)

// grace is how many bytes may come out of a compressed file before their ratio
// to what went in counts: short files of blanks are no bombs.
const grace = 1 << 20

// A limiter passes on at most left bytes, and of a compressed file no more than
// ratio times what went in.
type limiter struct {
	r      io.Reader
	left   int64
	packed *meter // nil: not compressed
	ratio  int64
	passed int64
}

// Read returns ErrLimit instead of the first byte too many.
func (l *limiter) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), ErrLimit
	}
	l.left -= int64(n)
	l.passed += int64(n)
	if l.packed != nil && l.passed > grace && (l.passed-grace)/l.ratio > l.packed.n {
		err = fmt.Errorf("ratio of decompression: %w", ErrLimit)
	}
	return n, err
}

// A meter counts what is read through it. It is an io.ByteReader so that what
// decompresses takes no more than it needs.
type meter struct {
	r *bufio.Reader
	n int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	return n, err
}

func (m *meter) ReadByte() (byte, error) {
	b, err := m.r.ReadByte()
	if err == nil {
		m.n++
	}
	return b, err
}
