package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// window is how much of a file is in memory at a time.
const window = 32 << 10

// An input is a file, decompressed and in UTF-8, that knows how far it was read.
type input struct {
	r      *bufio.Reader
	left   int64 // bytes that may still come, after decompression
	line   int
	offset int64
}

func newInput(r io.Reader, limit int64) *input {
	return &input{r: bufio.NewReaderSize(r, window), left: limit, line: 1}
}

// open finds out by its first bytes what the file is, and reports whether it
// is markup. Blanks and a byte order mark may come first.
func (in *input) open() (markup bool, err error) {
	source := io.Reader(in.r)
	if magic, _ := in.r.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if source, err = gzip.NewReader(source); err != nil {
			return false, err
		}
	}
	in.r = bufio.NewReaderSize(&limiter{source, &in.left}, window)
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
		return false, fmt.Errorf("UTF-16, which the protocol excludes, or no text: %w", ErrNotSitemap)
	}
	in.recode(head)
	return head[0] == '<', nil
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
	in.r = bufio.NewReaderSize(transform.NewReader(in.r, enc.NewDecoder()), window)
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

// A limiter refuses to read more than left bytes.
type limiter struct {
	r    io.Reader
	left *int64
}

// Read returns ErrLimit instead of the first byte too many.
func (l *limiter) Read(p []byte) (int, error) {
	if int64(len(p)) > *l.left+1 {
		p = p[:*l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > *l.left {
		n, err = int(*l.left), ErrLimit
	}
	*l.left -= int64(n)
	return n, err
}
