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

// bufferSize is how much of a file is in memory at a time.
const bufferSize = 32 << 10

// An input is a file, decompressed and in UTF-8, that knows how far it was read.
type input struct {
	r      *bufio.Reader
	line   int
	offset int64
}

func newInput(r io.Reader) *input {
	return &input{r: bufio.NewReaderSize(r, bufferSize), line: 1}
}

// decodeAndDetectMarkup finds out by its first bytes what the file is, and reports whether it
// is markup. Blanks and a byte order mark may come first.
func (in *input) decodeAndDetectMarkup(limits Options) (isMarkup bool, err error) {
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
			return false, replaceEOF(err, ErrNotSitemap) // it ends before its first character
		}
		if !isBlankByte(head[0]) {
			break
		}
		in.skip(1)
	}
	head, _ := in.r.Peek(512)
	if bytes.IndexByte(head, 0) >= 0 {
		return false, fmt.Errorf("no text: %w", ErrNotSitemap)
	}
	in.decodeDeclared(head)
	return head[0] == '<', nil
}

// decompress has the file decompressed if it is compressed, and limited.
func (in *input) decompress(limits Options) error {
	if magic, _ := in.r.Peek(2); string(magic) != "\x1f\x8b" {
		in.setReader(&sizeAndRatioLimitReader{r: in.r, remaining: limits.MaxBytes})
		return nil
	}
	compressed := &countingReader{r: in.r}
	decompressed, err := gzip.NewReader(compressed)
	if err == nil {
		in.setReader(&sizeAndRatioLimitReader{r: decompressed, remaining: limits.MaxBytes, compressedInput: compressed, maxDecompressionRatio: int64(limits.MaxDecompressionRatio)})
	}
	return err
}

// setReader has the rest of the file read through r, which reads in.r.
func (in *input) setReader(r io.Reader) { in.r = bufio.NewReaderSize(r, bufferSize) }

// decodeIfUTF16 has the file recoded if it is in UTF-16: by its byte order mark,
// or by how "<" is written.
func (in *input) decodeIfUTF16() {
	head, _ := in.r.Peek(2)
	switch string(head) {
	case "\xFE\xFF", "\x00<":
		in.setReader(transform.NewReader(in.r, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()))
	case "\xFF\xFE", "<\x00":
		in.setReader(transform.NewReader(in.r, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()))
	}
}

// replaceEOF returns what the end of the file means in a place, or else err as it is.
func replaceEOF(err, meaning error) error {
	if errors.Is(err, io.EOF) {
		return meaning
	}
	return err
}

// decodeDeclared has the rest of the file recoded, if its XML declaration, at the
// start of head, names an encoding other than UTF-8.
func (in *input) decodeDeclared(head []byte) {
	declaration, _, found := bytes.Cut(head, []byte("?>"))
	if !found || !bytes.HasPrefix(declaration, []byte("<?xml")) {
		return
	}
	enc, err := htmlindex.Get(string(attributeValue(declaration, "encoding")))
	if err != nil {
		return // what is ASCII can be read all the same
	}
	switch name, _ := htmlindex.Name(enc); name {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return
	}
	in.setReader(transform.NewReader(in.r, enc.NewDecoder()))
}

// readChunkUntil returns what comes next, up to and with end or as much as the window
// holds, and whether it ends with end. It is valid until the next call.
func (in *input) readChunkUntil(end byte) (b []byte, found bool, err error) {
	b, err = in.r.ReadSlice(end)
	in.offset += int64(len(b))
	in.line += bytes.Count(b, []byte{'\n'})
	if errors.Is(err, bufio.ErrBufferFull) {
		return b, false, nil
	}
	return b, err == nil, err
}

// skip passes over n bytes that were peeked at.
func (in *input) skip(n int) {
	b, _ := in.r.Peek(n)
	in.line += bytes.Count(b, []byte{'\n'})
	n, _ = in.r.Discard(len(b))
	in.offset += int64(n)
}

// hasPrefix reports whether s comes next.
func (in *input) hasPrefix(s string) bool {
	b, _ := in.r.Peek(len(s))
	return string(b) == s
}

// errorAt says where err occurred.
func (in *input) errorAt(err error) error {
	return fmt.Errorf("line %d, byte %d: %w", in.line, in.offset, err)
}

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
