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
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/httpfetch/internal/inflate"
)

// acceptEncoding lists the content codings that decoderPools undo, as an Accept-Encoding header: those that
// contentCodings knows, and whose memory peekDecoderWindowSize counts.
const acceptEncoding = "gzip, br, zstd, deflate"

const (
	// maxCodings is how many content codings a body may have, one inside the other.
	maxCodings = 4
	// maxZstdWindow is the largest window, in bytes, that a zstd body may need (RFC 9659, section 3).
	maxZstdWindow = 8 << 20
)

// Reasons why a body cannot be decoded.
var (
	errTooManyCodings = fmt.Errorf("more than %d content codings", maxCodings)
	errEncodedTooLong = errors.New("it is longer encoded than a decoded body may be")
)

// decoderPools undo content codings (RFC 9110, section 8.4.1). They hold what a body needs for that
// and the next body can reuse.
type decoderPools struct {
	byCoding map[string]*sync.Pool // decoders by the name of their coding; deflate has none
	inputs   sync.Pool             // of *bufio.Reader, which decoders read
}

// decoderInputBytes is how much of an encoded body is read at a time: a record of TLS.
const decoderInputBytes = 16 << 10

// newDecoderPools returns empty pools of decoders for gzip, brotli and zstd.
func newDecoderPools() *decoderPools {
	byCoding := map[string]*sync.Pool{
		"gzip": {New: func() any { return new(gzipDecoder) }},
		"br":   {New: func() any { return new(brotli.Reader) }},
		"zstd": {New: func() any {
			// These options are valid, so NewReader returns no error. With a concurrency of 1
			// a decoder has no goroutine that would have to be closed.
			zr, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxZstdWindow))
			return zr
		}},
	}
	return &decoderPools{byCoding, sync.Pool{New: func() any { return bufio.NewReaderSize(nil, decoderInputBytes) }}}
}

// contentCodings returns the codings of a body in the order in which they were applied. It returns
// false if one is unknown: then the body stays encoded, as in browsers.
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

// openBody returns the decoded body of res, and removes the content codings from its header. limit
// bounds the decoded body: at most limit + limit/8 + 4096 bytes are read of the encoded body, and of
// each intermediate stage if there are several codings. reserve is called for the memory that
// decoders keep. Close returns the decoders to their pools; the body of res stays open.
func (d *decoderPools) openBody(res *http.Response, limit int64, reserve func(int64) error) (io.ReadCloser, error) {
	names, known := contentCodings(res.Header)
	if !known || len(names) == 0 {
		return io.NopCloser(res.Body), nil
	}
	body := &decodedBody{codings: strings.Join(names, ", ")}
	if len(names) > maxCodings {
		return nil, body.malformedError(errTooManyCodings)
	}
	body.encodedReader = d.addInput(body, res.Body, limit)
	if _, err := body.encodedReader.Peek(1); err == io.EOF {
		body.decodedReader = body.encodedReader
		return body, nil // a 304 or 204 may name codings without having a body
	}
	// Undo the codings from the last one applied to the first.
	for i := len(names) - 1; i >= 0; i-- {
		input := body.encodedReader
		if body.decodedReader != nil {
			input = d.addInput(body, body.decodedReader, limit)
		}
		if n := peekDecoderWindowSize(names[i], input); n > 0 {
			if err := reserve(n); err != nil {
				return nil, errors.Join(err, body.Close())
			}
		}
		if err := d.addBodyDecoder(body, names[i], input); err != nil {
			return nil, errors.Join(body.classifyReadError(err), body.Close())
		}
	}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	return body, nil
}

// addBodyDecoder makes body.decodedReader decode one coding of src.
func (d *decoderPools) addBodyDecoder(body *decodedBody, coding string, src *decodeStageReader) (err error) {
	if pool := d.byCoding[coding]; pool != nil {
		return body.addPooledDecoder(pool, src)
	}
	if hasZlibHeader(src) { // the coding is deflate
		body.decodedReader, err = zlib.NewReader(src.Reader)
		return err
	}
	body.decodedReader = flate.NewReader(src.Reader)
	return nil
}

// hasZlibHeader reports whether src begins with a zlib header, as deflate should (RFC 9110, section
// 8.4.1.2). Some servers leave it out.
func hasZlibHeader(src *decodeStageReader) bool {
	b, err := src.Peek(2)
	return err == nil && b[0]&0x0f == 8 && b[0]>>4 <= 7 && (uint(b[0])<<8|uint(b[1]))%31 == 0
}

// A decodeStageReader is the body at one stage of decoding. The decoders of deflate and gzip get its
// bufio.Reader: that of gzip needs one, and that of deflate has a faster loop for it.
type decodeStageReader struct {
	*bufio.Reader
	limitedSource *maxBytesReader
}

// addInput returns a stage that reads r up to slightly more than limit bytes. Closing body returns its
// buffer to the pool.
func (d *decoderPools) addInput(body *decodedBody, r io.Reader, limit int64) *decodeStageReader {
	buffered := d.inputs.Get().(*bufio.Reader)
	body.release = append(body.release, func() {
		buffered.Reset(nil) // keeps nothing of the body
		d.inputs.Put(buffered)
	})
	// Data that does not compress grows a little when it is encoded.
	source := &maxBytesReader{r: r, remaining: limit + limit/8 + 4096}
	buffered.Reset(source)
	return &decodeStageReader{buffered, source}
}

// A maxBytesReader reads r, and fails with errEncodedTooLong instead of reading beyond a limit.
type maxBytesReader struct {
	r         io.Reader
	remaining int64
	bytesRead int64
	readErr   error // the error that ended the reading, if it was not EOF
}

// Read implements io.Reader.
func (b *maxBytesReader) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		b.readErr = errEncodedTooLong
		return 0, b.readErr
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.remaining)])
	b.remaining -= int64(n)
	b.bytesRead += int64(n)
	if err != nil && err != io.EOF {
		b.readErr = err
	}
	return n, err
}

// A decodedBody is a body that is decoded while it is read.
type decodedBody struct {
	encodedReader *decodeStageReader // the body as it arrives
	decodedReader io.Reader          // the last stage; nil until the first decoder is added
	codings       string             // for messages
	release       []func()           // return decoders and buffers to their pools
}

// A resettableDecoder is a decoder that a pool can hold.
type resettableDecoder interface {
	io.Reader
	Reset(io.Reader) error
}

// addPooledDecoder makes b.decodedReader a decoder from pool, reset to read src.
func (b *decodedBody) addPooledDecoder(pool *sync.Pool, src *decodeStageReader) error {
	r := pool.Get().(resettableDecoder)
	b.release = append(b.release, func() { pool.Put(r) })
	b.decodedReader = r
	return r.Reset(src)
}

// A gzipDecoder is an inflate.GzipReader for a pool.
type gzipDecoder struct{ inflate.GzipReader }

// Reset is part of resettableDecoder. src must be a *decodeStageReader.
func (d *gzipDecoder) Reset(src io.Reader) error {
	return d.GzipReader.Reset(src.(*decodeStageReader).Reader)
}

// Read implements io.Reader. At the end of the decoded data it reads the encoded body to its end, too:
// data that follows the last coded byte, such as the last chunk, is part of the response.
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

// Close returns the decoders and buffers to their pools. b must not be read afterwards.
func (b *decodedBody) Close() error {
	for _, release := range b.release {
		release()
	}
	b.release = nil
	return nil
}

// classifyReadError returns the error of the connection if reading failed, and otherwise an error
// that says that the body cannot be decoded.
func (b *decodedBody) classifyReadError(err error) error {
	if failed := b.encodedReader.limitedSource.readErr; failed != nil && failed != errEncodedTooLong {
		return failed
	}
	return b.malformedError(err)
}

func (b *decodedBody) malformedError(err error) error {
	return &fetchError{"the body cannot be decoded (Content-Encoding: " + b.codings + ")", decorum.Malformed, err}
}
