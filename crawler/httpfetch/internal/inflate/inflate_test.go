package inflate_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	klauspost "github.com/klauspost/compress/flate"

	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/inflate"
)

// newPage returns n bytes of words, tags and links.
func newPage(n int) []byte {
	var b bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the crawler of a polite page link robots frontier and waits host <p> </p> <div> </div>")
	for b.Len() < n {
		if r.IntN(8) == 0 {
			fmt.Fprintf(&b, "<a href=\"/page/%d/%x\">", r.IntN(100_000), r.Uint32())
		}
		b.WriteString(words[r.IntN(len(words))] + " ")
	}
	return b.Bytes()[:n]
}

// newNoise returns n random bytes, with long codes for the rare ones.
func newNoise(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(255 * r.ExpFloat64() / 20)
	}
	return b
}

// deflate returns b in DEFLATE of a level, with a flush in the middle.
func deflate(tb testing.TB, b []byte, level int) []byte {
	tb.Helper()
	var z bytes.Buffer
	w, err := flate.NewWriter(&z, level)
	if err != nil {
		tb.Fatal(err)
	}
	w.Write(b[:len(b)/2])
	w.Flush()
	w.Write(b[len(b)/2:])
	w.Close()
	return z.Bytes()
}

// decode returns what a Reader reads from src.
func decode(src *bufio.Reader) ([]byte, error) {
	var r inflate.Reader
	r.Reset(src)
	return io.ReadAll(&r)
}

// TestReader: data of each level of compression is decoded, whatever its length and however it arrives, and what
// follows it is left in the source.
func TestReader(t *testing.T) {
	t.Parallel()
	contents := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("abcdefg"), 20_000), newNoise(100_000)}
	for _, n := range []int{0, 1, 2, 100, 20_000, 300_000} {
		contents = append(contents, newPage(n))
	}
	var reused inflate.Reader
	for _, want := range contents {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			z := append(deflate(t, want, level), "tail"...)
			for name, src := range map[string]*bufio.Reader{
				"at once":          bufio.NewReaderSize(bytes.NewReader(z), 16<<10),
				"in small pieces":  bufio.NewReaderSize(bytes.NewReader(z), 16),
				"byte by byte":     bufio.NewReader(iotest.OneByteReader(bytes.NewReader(z))),
				"with early error": bufio.NewReader(iotest.DataErrReader(bytes.NewReader(z))),
			} {
				reused.Reset(src)
				got, err := io.ReadAll(&reused)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, level %d, %s: %d bytes, %v", len(want), level, name, len(got), err)
				}
				if tail, err := io.ReadAll(src); string(tail) != "tail" || err != nil {
					t.Fatalf("%d bytes, level %d, %s: %q is left, %v", len(want), level, name, tail, err)
				}
			}
		}
	}
}

// TestTruncated: data that ends too early is not taken for whole, and what came before is returned.
func TestTruncated(t *testing.T) {
	t.Parallel()
	want := newPage(3_000)
	z := deflate(t, want, 6)
	for n := range z {
		got, err := decode(bufio.NewReader(bytes.NewReader(z[:n])))
		if err != io.ErrUnexpectedEOF || !bytes.HasPrefix(want, got) {
			t.Fatalf("%d of %d bytes: %v", n, len(z), err)
		}
		failed := errors.New("failed")
		src := io.MultiReader(bytes.NewReader(z[:n]), iotest.ErrReader(failed))
		if _, err := decode(bufio.NewReader(src)); err != failed {
			t.Fatalf("%d of %d bytes: %v, want the error of the source", n, len(z), err)
		}
	}
}

// FuzzReader: a Reader accepts what compress/flate accepts, with the same output, and takes as much from its source.
func FuzzReader(f *testing.F) {
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
		f.Add(deflate(f, newPage(500), level))
		f.Add(deflate(f, newNoise(500), level))
	}
	f.Add([]byte{0x03, 0x00})                                              // fixed codes, at once the end
	f.Add([]byte{0x63, 0x00, 0x03, 0x00})                                  // a distance beyond the start
	f.Add([]byte{0x05, 0xe0, 0x81, 0x08, 0x00, 0x00, 0x00, 0x00, 0x20})    // a code of one bit
	f.Add([]byte{0x04, 0xc0, 0x81, 0x08, 0x00, 0x00, 0x00, 0x00, 0x20, 0}) // another
	f.Fuzz(func(t *testing.T, z []byte) {
		const limit = 1 << 20
		wantSrc, gotSrc := bufio.NewReader(bytes.NewReader(z)), bufio.NewReader(bytes.NewReader(z))
		want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(wantSrc), limit))
		var r inflate.Reader
		r.Reset(gotSrc)
		got, err := io.ReadAll(io.LimitReader(&r, limit))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
		if len(got) == limit {
			return
		}
		wantTail, _ := io.ReadAll(wantSrc)
		if tail, _ := io.ReadAll(gotSrc); !bytes.Equal(tail, wantTail) {
			t.Fatalf("%q is left, want %q", tail, wantTail)
		}
	})
}

// TestDamaged: data with changed bytes is read as compress/flate reads it.
func TestDamaged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	accepted := 0
	for _, original := range [][]byte{deflate(t, newPage(5_000), 6), deflate(t, newNoise(5_000), 6),
		deflate(t, newPage(200), flate.HuffmanOnly), deflate(t, newPage(100), 0)} {
		for range 3_000 {
			z := bytes.Clone(original)
			for range 1 + r.IntN(3) {
				z[r.IntN(min(len(z), 1+r.IntN(len(z))))] ^= 1 << r.IntN(8)
			}
			want, wantErr := io.ReadAll(flate.NewReader(bytes.NewReader(z)))
			got, err := decode(bufio.NewReader(bytes.NewReader(z)))
			if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
				t.Fatalf("%x: %d bytes, %v; want %d bytes, %v", z, len(got), err, len(want), wantErr)
			}
			if err == nil {
				accepted++
			}
		}
	}
	if accepted < 100 {
		t.Errorf("only %d were accepted", accepted)
	}
}

// gzipOf returns b as a gzip member with a header.
func gzipOf(t *testing.T, b []byte, header gzip.Header) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Header = header
	w.Write(b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// TestGzipReader: members are read one after the other, whatever their headers have, and damage is found.
func TestGzipReader(t *testing.T) {
	t.Parallel()
	page := newPage(70_000)
	plain := gzipOf(t, page, gzip.Header{})
	full := gzipOf(t, page, gzip.Header{Name: "page", Comment: "from Gó", Extra: []byte("extra")})
	// A header with its checksum, which compress/gzip does not write.
	checked := append([]byte{0x1f, 0x8b, 8, 1 << 1, 0, 0, 0, 0, 0, 3}, 0, 0)
	binary.LittleEndian.PutUint16(checked[10:], uint16(crc32.ChecksumIEEE(checked[:10])))
	checked = append(checked, plain[10:]...)
	changed := func(at int, to byte) []byte {
		z := bytes.Clone(plain)
		z[at] = to
		return z
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, tt := range []struct {
		name  string
		z     []byte
		pages int // how often page is read
		err   error
	}{
		{"a member", plain, 1, nil},
		{"name, comment, extra field", full, 1, nil},
		{"checksum of the header", checked, 1, nil},
		{"several members", join(plain, full, checked), 3, nil},
		{"an empty member between", join(plain, gzipOf(t, nil, gzip.Header{}), plain), 2, nil},
		{"other data behind", join(plain, []byte("\x00 0 rows")), 1, nil},
		{"a byte behind", join(plain, []byte("\x1f")), 1, nil},
		{"half a member behind", join(plain, plain[:5]), 1, io.ErrUnexpectedEOF},
		{"no gzip", []byte("<!DOCTYPE html>"), 0, inflate.ErrHeader},
		{"another method", changed(2, 7), 0, inflate.ErrHeader},
		{"reserved flag", changed(3, 0x20), 0, inflate.ErrHeader},
		{"wrong checksum", changed(len(plain)-8, plain[len(plain)-8]+1), 1, inflate.ErrChecksum},
		{"wrong length", changed(len(plain)-1, plain[len(plain)-1]+1), 1, inflate.ErrChecksum},
		{"half a trailer", plain[:len(plain)-3], 1, io.ErrUnexpectedEOF},
		{"half a name", full[:20], 0, io.ErrUnexpectedEOF},
		{"nothing", nil, 0, io.ErrUnexpectedEOF},
	} {
		var r inflate.GzipReader
		err := r.Reset(bufio.NewReader(bytes.NewReader(tt.z)))
		var got []byte
		if err == nil {
			got, err = io.ReadAll(&r)
		}
		if err != tt.err || !bytes.Equal(got, bytes.Repeat(page, tt.pages)) {
			t.Errorf("%s: %d bytes, %v; want %d pages, %v", tt.name, len(got), err, tt.pages, tt.err)
		}
		wantAgain := cmp.Or(tt.err, io.EOF)
		if n, err := r.Read(make([]byte, 100)); n > 0 || err != wantAgain {
			t.Errorf("%s, read again: %d bytes, %v; want %v", tt.name, n, err, wantAgain)
		}
	}
}

// BenchmarkReader compares a Reader with that of klauspost/compress, which is the fastest of those that are
// maintained.
func BenchmarkReader(b *testing.B) {
	for _, n := range []int{20_000, 242_000} {
		z := deflate(b, newPage(n), 6)
		src, buf := bufio.NewReaderSize(nil, 16<<10), make([]byte, 64<<10)
		run := func(b *testing.B, reset func() io.Reader) {
			b.SetBytes(int64(n))
			for b.Loop() {
				src.Reset(bytes.NewReader(z))
				for r := reset(); ; {
					if _, err := r.Read(buf); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		b.Run(fmt.Sprintf("inflate/%d", n), func(b *testing.B) {
			r := new(inflate.Reader)
			run(b, func() io.Reader { r.Reset(src); return r })
		})
		b.Run(fmt.Sprintf("klauspost/%d", n), func(b *testing.B) {
			r := klauspost.NewReader(nil)
			run(b, func() io.Reader {
				if err := r.(klauspost.Resetter).Reset(src, nil); err != nil {
					b.Fatal(err)
				}
				return r
			})
		})
	}
}
