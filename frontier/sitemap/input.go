package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// bufferSize is how many bytes of a file are in memory at a time.
const bufferSize = 32 << 10

// An input is a decompressed file in UTF-8 that counts how far it has been read.
type input struct {
	r      *bufio.Reader
	line   int   // of the next byte, from 1
	offset int64 // bytes that have been read
}

// newInput returns an input that reads r.
func newInput(r io.Reader) *input {
	return &input{r: bufio.NewReaderSize(r, bufferSize), line: 1}
}

// decodeAndDetectMarkup prepares the file for reading as UTF-8, and reports whether it is markup.
// The first bytes decide, after white space and a byte order mark.
func (in *input) decodeAndDetectMarkup(limits Options) (isMarkup bool, err error) {
	// Remove the outer layers first: compression, then UTF-16, then a byte order mark.
	if err := in.decompress(limits); err != nil {
		return false, err
	}
	in.decodeIfUTF16()
	if bom, _ := in.r.Peek(3); string(bom) == "\xEF\xBB\xBF" {
		in.skip(len(bom))
	}
	for {
		head, err := in.r.Peek(1)
		if err != nil {
			return false, replaceEOF(err, ErrNotSitemap) // the file has no character
		}
		if !isBlankByte(head[0]) {
			break
		}
		in.skip(1)
	}
	// The first 512 bytes show whether the file is binary, and which encoding it declares.
	head, _ := in.r.Peek(512)
	if bytes.IndexByte(head, 0) >= 0 {
		return false, fmt.Errorf("no text: %w", ErrNotSitemap)
	}
	in.decodeDeclared(head)
	return head[0] == '<', nil
}

// decompress decompresses the file if it is in gzip format, and applies the limits of size and
// ratio.
func (in *input) decompress(limits Options) error {
	if magic, _ := in.r.Peek(2); string(magic) != "\x1f\x8b" {
		in.setReader(&sizeAndRatioLimitReader{r: in.r, remaining: limits.MaxBytes})
		return nil
	}
	compressed := &countingReader{r: in.r}
	decompressed, err := gzip.NewReader(compressed)
	if err == nil {
		in.setReader(&sizeAndRatioLimitReader{r: decompressed, remaining: limits.MaxBytes, compressedInput: compressed,
			maxDecompressionRatio: int64(limits.MaxDecompressionRatio)})
	}
	return err
}

// setReader makes r, which reads in.r, the source of the rest of the file.
func (in *input) setReader(r io.Reader) { in.r = bufio.NewReaderSize(r, bufferSize) }

// decodeIfUTF16 decodes the file if it begins with a byte order mark of UTF-16 or with "<" in
// UTF-16.
func (in *input) decodeIfUTF16() {
	head, _ := in.r.Peek(2)
	switch string(head) {
	case "\xFE\xFF", "\x00<":
		in.setReader(transform.NewReader(in.r, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()))
	case "\xFF\xFE", "<\x00":
		in.setReader(transform.NewReader(in.r, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()))
	}
}

// replaceEOF returns meaning if err is io.EOF, and err otherwise.
func replaceEOF(err, meaning error) error {
	if errors.Is(err, io.EOF) {
		return meaning
	}
	return err
}

// decodeDeclared decodes the rest of the file if its XML declaration, at the start of head, names
// an encoding other than UTF-8.
func (in *input) decodeDeclared(head []byte) {
	declaration, _, found := bytes.Cut(head, []byte("?>"))
	if !found || !bytes.HasPrefix(declaration, []byte("<?xml")) {
		return
	}
	enc, err := htmlindex.Get(string(attributeValue(declaration, "encoding")))
	if err != nil {
		return // an unknown encoding: ASCII text is readable without decoding
	}
	switch name, _ := htmlindex.Name(enc); name {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return
	}
	in.setReader(transform.NewReader(in.r, enc.NewDecoder()))
}

// readChunkUntil returns the next bytes up to and including end, or as many as the buffer holds,
// and reports whether they end with end. They are valid until the next call.
func (in *input) readChunkUntil(end byte) (b []byte, found bool, err error) {
	b, err = in.r.ReadSlice(end)
	in.offset += int64(len(b))
	in.line += bytes.Count(b, []byte{'\n'})
	if errors.Is(err, bufio.ErrBufferFull) {
		return b, false, nil
	}
	return b, err == nil, err
}

// skip discards n bytes, which must have been peeked.
func (in *input) skip(n int) {
	b, _ := in.r.Peek(n)
	in.line += bytes.Count(b, []byte{'\n'})
	n, _ = in.r.Discard(len(b))
	in.offset += int64(n)
}

// hasPrefix reports whether the next bytes are s.
func (in *input) hasPrefix(s string) bool {
	b, _ := in.r.Peek(len(s))
	return string(b) == s
}

// errorAt adds the current line and byte to err.
func (in *input) errorAt(err error) error {
	return fmt.Errorf("line %d, byte %d: %w", in.line, in.offset, err)
}

// ratioFreeBytes is how many decompressed bytes are not counted in the ratio, because a short file
// of blanks does no harm.
const ratioFreeBytes = 1 << 20

// A sizeAndRatioLimitReader reads at most remaining bytes from r. If compressedInput is set, it
// reads at most maxDecompressionRatio times as many bytes as that, after ratioFreeBytes.
type sizeAndRatioLimitReader struct {
	r                     io.Reader
	remaining             int64
	compressedInput       *countingReader // counts the compressed bytes; nil: r is not compressed
	maxDecompressionRatio int64
	totalRead             int64
}

// Read implements io.Reader. It returns ErrLimit in place of the first byte beyond a limit.
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
	if l.compressedInput != nil && l.totalRead > ratioFreeBytes &&
		(l.totalRead-ratioFreeBytes)/l.maxDecompressionRatio > l.compressedInput.n {
		err = fmt.Errorf("ratio of decompression: %w", ErrLimit)
	}
	return n, err
}

// A countingReader counts the bytes read through it. It implements io.ByteReader so that the
// decompressor reads no more than it needs.
type countingReader struct {
	r *bufio.Reader
	n int64
}

// Read implements io.Reader.
func (m *countingReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader.
func (m *countingReader) ReadByte() (byte, error) {
	b, err := m.r.ReadByte()
	if err == nil {
		m.n++
	}
	return b, err
}
