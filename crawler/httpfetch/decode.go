package httpfetch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum"
)

// acceptEncoding are the content codings that decoders undo.
const acceptEncoding = "gzip, br, zstd, deflate"

const (
	// maxCodings is how many codings a body may have, one in the other.
	maxCodings = 4
	// maxZstdWindow is the window that a zstd body may need (RFC 9659, section 3).
	maxZstdWindow = 8 << 20
)

// Reasons why a body cannot be decoded.
var (
	errTooManyCodings = fmt.Errorf("more than %d content codings", maxCodings)
	errEncodedTooLong = errors.New("it is longer encoded than decoded bodies may be")
)

// decoderPools undo content codings (RFC 9110, section 8.4.1), by the name of the coding. What
// they need is used again.
type decoderPools map[string]*sync.Pool

func newDecoderPools() decoderPools {
	return decoderPools{
		"gzip": {New: func() any { return new(gzipMembersReader) }},
		"br":   {New: func() any { return new(brotli.Reader) }},
		"zstd": {New: func() any {
			// The options are good ones, and so there is no error. With a concurrency
			// of 1 a decoder has no goroutine to be closed.
			zr, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxZstdWindow))
			return zr
		}},
	}
}

// contentCodings returns the codings of a body in the order in which they were
// applied, and false if one is unknown: then the body is left as it came, as
// browsers leave it.
func contentCodings(h http.Header) ([]string, bool) {
	var names []string
	for _, line := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(line, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "", "identity":
			case "x-gzip":
				names = append(names, "gzip")
			case "gzip", "deflate", "br", "zstd":
				names = append(names, name)
			default:
				return nil, false
			}
		}
	}
	return names, true
}

// openBody returns the body of res without its codings, and takes these from the
// header. limit is how long a body may be: neither encoded, nor with some
// codings undone, is more read. reserve is called for what decoders keep. Close ends
// the use of the reader; the body of res stays open.
func (d decoderPools) openBody(res *http.Response, limit int64, reserve func(int64) error) (io.ReadCloser, error) {
	names, known := contentCodings(res.Header)
	if !known || len(names) == 0 {
		return io.NopCloser(res.Body), nil
	}
	body := &decodedBody{encodedReader: newDecoderInput(res.Body, limit), codings: strings.Join(names, ", ")}
	if len(names) > maxCodings {
		return nil, body.malformedError(errTooManyCodings)
	}
	if _, err := body.encodedReader.Peek(1); err == io.EOF {
		return io.NopCloser(body.encodedReader), nil // 304 and 204 have codings and no body
	}
	input := body.encodedReader
	for i := len(names) - 1; i >= 0; i-- {
		if n := peekDecoderWindowSize(names[i], input); n > 0 {
			if err := reserve(n); err != nil {
				return nil, errors.Join(err, body.Close())
			}
		}
		if err := d.addBodyDecoder(body, names[i], input); err != nil {
			return nil, errors.Join(body.classifyReadError(err), body.Close())
		}
		input = newDecoderInput(body.decodedReader, limit)
	}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	return body, nil
}

// addBodyDecoder adds the decoder of one coding to body.
func (d decoderPools) addBodyDecoder(body *decodedBody, coding string, src *decodeStageReader) (err error) {
	if pool := d[coding]; pool != nil {
		return body.addPooledDecoder(pool, src)
	}
	if hasZlibHeader(src) { // it is deflate
		body.decodedReader, err = zlib.NewReader(src)
		return err
	}
	body.decodedReader = flate.NewReader(src)
	return nil
}

// hasZlibHeader reports whether src begins with a zlib header, as deflate should (RFC
// 9110, section 8.4.1.2). Some servers leave it out.
func hasZlibHeader(src *decodeStageReader) bool {
	b, err := src.Peek(2)
	return err == nil && b[0]&0x0f == 8 && b[0]>>4 <= 7 && (uint(b[0])<<8|uint(b[1]))%31 == 0
}

// A decodeStageReader is a body at one stage of decoding.
type decodeStageReader struct {
	*bufio.Reader
	limitedSource *maxBytesReader
}

func newDecoderInput(r io.Reader, limit int64) *decodeStageReader {
	source := &maxBytesReader{r: r, remaining: limit + limit/8 + 4096} // what does not shrink grows a little
	return &decodeStageReader{bufio.NewReader(source), source}
}

// A maxBytesReader fails where it should have ended.
type maxBytesReader struct {
	r         io.Reader
	remaining int64
	readErr   error // other than EOF
}

// Read implements io.Reader.
func (b *maxBytesReader) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		b.readErr = errEncodedTooLong
		return 0, b.readErr
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	if err != nil && err != io.EOF {
		b.readErr = err
	}
	return n, err
}

// A decodedBody is a body being decoded.
type decodedBody struct {
	encodedReader   *decodeStageReader // as it comes
	decodedReader   io.Reader
	codings         string // its codings
	releaseDecoders []func()
}

// A resettableDecoder can be reset, as all decoders in pools can.
type resettableDecoder interface {
	io.Reader
	Reset(io.Reader) error
}

// addPooledDecoder adds a decoder out of pool.
func (b *decodedBody) addPooledDecoder(pool *sync.Pool, src *decodeStageReader) error {
	r := pool.Get().(resettableDecoder)
	b.releaseDecoders = append(b.releaseDecoders, func() { pool.Put(r) })
	b.decodedReader = r
	return r.Reset(src)
}

// gzipMembersReader reads gzip members, one after the other (RFC 1952, section 2.2). Anything
// else behind them is passed by, as browsers do: there are servers that leave
// something there.
type gzipMembersReader struct {
	member gzip.Reader
	src    *decodeStageReader
}

// Reset is part of resettableDecoder; src is a *decodeStageReader.
func (m *gzipMembersReader) Reset(src io.Reader) error {
	m.src = src.(*decodeStageReader)
	return m.openMember()
}

func (m *gzipMembersReader) openMember() error {
	err := m.member.Reset(m.src)
	m.member.Multistream(false)
	return err
}

// Read implements io.Reader.
func (m *gzipMembersReader) Read(p []byte) (int, error) {
	for {
		n, err := m.member.Read(p)
		switch {
		case err != io.EOF:
			return n, err
		case n > 0:
			return n, nil
		}
		magic, err := m.src.Peek(2)
		switch {
		case err != nil && err != io.EOF:
			return 0, err
		case string(magic) != "\x1f\x8b":
			return 0, io.EOF
		}
		if err := m.openMember(); err != nil {
			return 0, err
		}
	}
}

// Read implements io.Reader. It ends where what came over the wire ends: what
// follows the last coded byte, as a body's last chunk does, is of the answer too.
func (b *decodedBody) Read(p []byte) (int, error) {
	n, err := b.decodedReader.Read(p)
	if err == io.EOF {
		if _, drainErr := io.Copy(io.Discard, b.encodedReader); drainErr != nil {
			err = drainErr
		}
	}
	if err != nil && err != io.EOF {
		err = b.classifyReadError(err)
	}
	return n, err
}

// Close gives the decoders back.
func (b *decodedBody) Close() error {
	for _, release := range b.releaseDecoders {
		release()
	}
	b.releaseDecoders = nil
	return nil
}

// classifyReadError says whether the body could not be had, or could not be decoded.
func (b *decodedBody) classifyReadError(err error) error {
	if failed := b.encodedReader.limitedSource.readErr; failed != nil && failed != errEncodedTooLong {
		return failed
	}
	return b.malformedError(err)
}

func (b *decodedBody) malformedError(err error) error {
	return &fetchError{"the body cannot be decoded (Content-Encoding: " + b.codings + ")", decorum.Malformed, err}
}
