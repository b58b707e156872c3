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

// window is how much of a file is in memory at a time.
const window = 32 << 10

// An input is a file, decompressed and in UTF-8, that knows how far it was read.
type input struct {
	r      *bufio.Reader
	line   int
	offset int64
}

func newInput(r io.Reader) *input {
	return &input{r: bufio.NewReaderSize(r, window), line: 1}
}

// open finds out by its first bytes what the file is, and reports whether it
// is markup. Blanks and a byte order mark may come first.
func (in *input) open(limits Options) (markup bool, err error) {
	if err := in.unpack(limits); err != nil {
		return false, err
	}
	in.decodeUTF16()
	if mark, _ := in.r.Peek(3); string(mark) == "\xEF\xBB\xBF" {
		in.skip(len(mark))
	}
	for {
		head, err := in.r.Peek(1)
		if err != nil {
			return false, notEmpty(err)
		}
		if !isBlank(head[0]) {
			break
		}
		in.skip(1)
	}
	head, _ := in.r.Peek(512)
	if bytes.IndexByte(head, 0) >= 0 {
		return false, fmt.Errorf("no text: %w", ErrNotSitemap)
	}
	in.recode(head)
	return head[0] == '<', nil
}

// unpack has the file decompressed if it is compressed, and limited.
func (in *input) unpack(limits Options) error {
	if magic, _ := in.r.Peek(2); string(magic) != "\x1f\x8b" {
		in.through(&limiter{r: in.r, left: limits.Bytes})
		return nil
	}
	packed := &meter{r: in.r}
	unpacked, err := gzip.NewReader(packed)
	if err == nil {
		in.through(&limiter{r: unpacked, left: limits.Bytes, packed: packed, ratio: int64(limits.Ratio)})
	}
	return err
}

// through has the rest of the file read through r, which reads in.r.
func (in *input) through(r io.Reader) { in.r = bufio.NewReaderSize(r, window) }

// decodeUTF16 has the file recoded if it is in UTF-16: by its byte order mark,
// or by how "<" is written.
func (in *input) decodeUTF16() {
	head, _ := in.r.Peek(2)
	switch string(head) {
	case "\xFE\xFF", "\x00<":
		in.through(transform.NewReader(in.r, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()))
	case "\xFF\xFE", "<\x00":
		in.through(transform.NewReader(in.r, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()))
	}
}

// notEmpty says what it means that a file ends before its first character.
func notEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrNotSitemap
	}
	return err
}

// recode has the rest of the file recoded, if its XML declaration, at the
// start of head, names an encoding other than UTF-8.
func (in *input) recode(head []byte) {
	declaration, _, found := bytes.Cut(head, []byte("?>"))
	if !found || !bytes.HasPrefix(declaration, []byte("<?xml")) {
		return
	}
	enc, err := htmlindex.Get(string(attribute(declaration, "encoding")))
	if err != nil {
		return // what is ASCII can be read all the same
	}
	switch name, _ := htmlindex.Name(enc); name {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return
	}
	in.through(transform.NewReader(in.r, enc.NewDecoder()))
}

// chunk returns what comes next, up to and with end or as much as the window
// holds, and whether it ends with end. It is valid until the next call.
func (in *input) chunk(end byte) (b []byte, found bool, err error) {
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

// next reports whether s comes next.
func (in *input) next(s string) bool {
	b, _ := in.r.Peek(len(s))
	return string(b) == s
}

// at says where err occurred.
func (in *input) at(err error) error {
	return fmt.Errorf("line %d, byte %d: %w", in.line, in.offset, err)
}
