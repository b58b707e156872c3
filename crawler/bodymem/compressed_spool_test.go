package bodymem

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// TestSpool: a body is read back unchanged any number of times, and 50 MiB of repetition take few
// bytes.
func TestSpool(t *testing.T) {
	m := newMemory(t, 64)
	random := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	for _, body := range [][]byte{nil, []byte("a"), random,
		bytes.Repeat([]byte("<url><loc>http://a.test/</loc></url>\n"), 50*mib/37)} {
		s := openShare(t, m, "url", 0)
		p, err := s.NewCompressedSpool(t.Context(), m.MaxBodyLen(1))
		if err != nil {
			t.Fatal(err)
		}
		if more, err := p.Fill(bytes.NewReader(body), 50*mib); more || err != nil {
			t.Fatal(more, err)
		}
		for range 2 {
			if got, err := io.ReadAll(p.Open()); err != nil || !bytes.Equal(got, body) {
				t.Errorf("got %d bytes, %v; want %d", len(got), err, len(body))
			}
		}
		if p.SHA256() != sha256.Sum256(body) || p.Len() != int64(len(body)) || p.Truncated() {
			t.Errorf("got %x, %d bytes, %v", p.SHA256(), p.Len(), p.Truncated())
		}
		if used, want := m.Usage().Bytes, p.compressedLen+chunkSize+spoolOverhead+firstBytes; used > want {
			t.Errorf("%d bytes are reserved for %d stored", used, p.compressedLen)
		}
		if len(body) > mib && p.compressedLen > mib {
			t.Errorf("%d bytes take %d", len(body), p.compressedLen)
		}
		s.Close()
		checkUnused(t, m)
	}
}

// TestSpoolLimits: a body is cut at the limit of the visit, and at what the whole memory can hold.
func TestSpoolLimits(t *testing.T) {
	m := newMemory(t, 8)
	s := openShare(t, m, "url", 0)
	defer s.Close()
	p, err := s.NewCompressedSpool(t.Context(), m.MaxBodyLen(1))
	if err != nil {
		t.Fatal(err)
	}
	if more, err := p.Fill(strings.NewReader("four score"), 4); !more || err != nil || p.Len() != 4 || p.Truncated() {
		t.Errorf("got %v, %v, %d bytes, %v", more, err, p.Len(), p.Truncated())
	}
	p, err = s.NewCompressedSpool(t.Context(), m.MaxBodyLen(1))
	if err != nil {
		t.Fatal(err)
	}
	more, err := p.Fill(rand.NewChaCha8([32]byte{}), 50*mib)
	if !more || err != nil || !p.Truncated() || p.compressedLen > m.MaxBodyLen(1) {
		t.Errorf("got %v, %v, %d bytes stored, %v", more, err, p.compressedLen, p.Truncated())
	}
	got, err := io.Copy(io.Discard, p.Open())
	if err == nil || got < mib {
		t.Errorf("got %d bytes of a body that was cut, %v; want an error at its end", got, err)
	}
	broken := errors.New("broken")
	p, err = s.NewCompressedSpool(t.Context(), m.MaxBodyLen(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Fill(iotest.ErrReader(broken), mib); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestOtherGoroutinesRun: writing and reading a body that is pure computation yields at each block.
func TestOtherGoroutinesRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	m := newMemory(t, 8)
	s := openShare(t, m, "url", 0)
	defer s.Close()
	p, err := s.NewCompressedSpool(t.Context(), m.MaxBodyLen(1))
	if err != nil {
		t.Fatal(err)
	}
	const blocks = 1000
	for _, work := range []func() error{
		func() error { _, err := p.Fill(zeroReader{}, blocks*blockSize); return err },
		func() error {
			_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, p.Open(), make([]byte, blockSize))
			return err
		},
	} {
		turns, over := 0, make(chan error, 1)
		go func() { over <- work() }()
		for len(over) == 0 {
			turns++
			runtime.Gosched()
		}
		if err := <-over; err != nil || turns < blocks/2 {
			t.Errorf("others ran %d times, %v; want once a block, which are %d", turns, err, blocks)
		}
	}
}

// zeroReader reads endless zeros.
type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestSpoolBytes: no body takes more than MaxSpoolBytesForBody, and an incompressible one takes
// about as much.
func TestSpoolBytes(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	for _, n := range []int64{1, blockSize - 1, blockSize, blockSize + 1, 3*blockSize + 7, 2 * mib} {
		m := newMemory(t, 8)
		s := openShare(t, m, "url", 0)
		p, err := s.NewCompressedSpool(t.Context(), m.MaxBodyLen(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Fill(io.LimitReader(random, n), n); err != nil {
			t.Fatal(err)
		}
		if maxBytes := MaxSpoolBytesForBody(n); p.ReservedBytes() > maxBytes ||
			p.ReservedBytes() < maxBytes-3*chunkSize {
			t.Errorf("a body of %d bytes takes %d; want about %d at most", n, p.ReservedBytes(), maxBytes)
		}
		s.Close()
	}
}
