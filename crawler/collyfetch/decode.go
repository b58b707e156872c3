package collyfetch

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
	// zstdWindow is the window that a zstd body may need (RFC 9659, section 3).
	zstdWindow = 8 << 20
)

// Reasons why a body cannot be decoded.
var (
	errCodings = fmt.Errorf("more than %d content codings", maxCodings)
	errBloated = errors.New("it is longer encoded than decoded bodies may be")
)

// decoders undo content codings (RFC 9110, section 8.4.1). What they need is
// used again.
type decoders struct{ gzip, brotli, zstd sync.Pool }

func newDecoders() *decoders {
	d := new(decoders)
	d.gzip.New = func() any { return new(members) }
	d.brotli.New = func() any { return new(brotli.Reader) }
	d.zstd.New = func() any {
		// The options are good ones, and so there is no error. With a concurrency
		// of 1 a decoder has no goroutine to be closed.
		zr, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		return zr
	}
	return d
}

// codings returns the codings of a body in the order in which they were
// applied, and false if one is unknown: then the body is left as it came, as
// browsers leave it.
func codings(h http.Header) ([]string, bool) {
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

// open returns the body of res without its codings, and takes these from the
// header. limit is how long a body may be: neither encoded, nor with some
// codings undone, is more read. reserve is called for what decoders keep. Close ends
// the use of the reader; the body of res stays open.
func (d *decoders) open(res *http.Response, limit int64, reserve func(int64) error) (io.ReadCloser, error) {
	names, known := codings(res.Header)
	if !known || len(names) == 0 {
		return io.NopCloser(res.Body), nil
	}
	body := &decoding{wire: newLayer(res.Body, limit), what: strings.Join(names, ", ")}
	if len(names) > maxCodings {
		return nil, body.damaged(errCodings)
	}
	if _, err := body.wire.Peek(1); err == io.EOF {
		return io.NopCloser(body.wire), nil // 304 and 204 have codings and no body
	}
	at := body.wire
	for i := len(names) - 1; i >= 0; i-- {
		if n := windowOf(names[i], at); n > 0 {
			if err := reserve(n); err != nil {
				return nil, errors.Join(err, body.Close())
			}
		}
		if err := d.undo(body, names[i], at); err != nil {
			return nil, errors.Join(body.explain(err), body.Close())
		}
		at = newLayer(body.out, limit)
	}
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	return body, nil
}

// undo adds the decoder of one coding to body.
func (d *decoders) undo(body *decoding, coding string, src *layer) (err error) {
	switch coding {
	case "gzip":
		return body.addPooledDecoder(&d.gzip, src)
	case "br":
		return body.addPooledDecoder(&d.brotli, src)
	case "zstd":
		return body.addPooledDecoder(&d.zstd, src)
	}
	if isZlib(src) {
		body.out, err = zlib.NewReader(src)
		return err
	}
	body.out = flate.NewReader(src)
	return nil
}

// isZlib reports whether src begins with a zlib header, as deflate should (RFC
// 9110, section 8.4.1.2). Some servers leave it out.
func isZlib(src *layer) bool {
	b, err := src.Peek(2)
	return err == nil && b[0]&0x0f == 8 && b[0]>>4 <= 7 && (uint(b[0])<<8|uint(b[1]))%31 == 0
}

// A layer is a body at one stage of decoding.
type layer struct {
	*bufio.Reader
	source *bounded
}

func newLayer(r io.Reader, limit int64) *layer {
	source := &bounded{from: r, left: limit + limit/8 + 4096} // what does not shrink grows a little
	return &layer{bufio.NewReader(source), source}
}

// A bounded reader fails where it should have ended.
type bounded struct {
	from io.Reader
	left int64
	err  error // other than EOF
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = errBloated
		return 0, b.err
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// A decoding is a body being decoded.
type decoding struct {
	wire    *layer // as it comes
	out     io.Reader
	what    string // its codings
	release []func()
}

// A reusable decoder, as all of those in pools are.
type reusable interface {
	io.Reader
	Reset(io.Reader) error
}

// addPooledDecoder adds a decoder out of pool.
func (b *decoding) addPooledDecoder(pool *sync.Pool, src *layer) error {
	r := pool.Get().(reusable)
	b.release = append(b.release, func() { pool.Put(r) })
	b.out = r
	return r.Reset(src)
}

// members reads gzip members, one after the other (RFC 1952, section 2.2). Anything
// else behind them is passed by, as browsers do: there are servers that leave
// something there.
type members struct {
	one gzip.Reader
	src *layer
}

// Reset is part of reusable; src is a layer.
func (m *members) Reset(src io.Reader) error {
	m.src = src.(*layer)
	return m.open()
}

func (m *members) open() error {
	err := m.one.Reset(m.src)
	m.one.Multistream(false)
	return err
}

// Read implements io.Reader.
func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.one.Read(p)
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
		if err := m.open(); err != nil {
			return 0, err
		}
	}
}

// Read implements io.Reader. It ends where what came over the wire ends: what
// follows the last coded byte, as a body's last chunk does, is of the answer too.
func (b *decoding) Read(p []byte) (int, error) {
	n, err := b.out.Read(p)
	if err == io.EOF {
		if _, rest := io.Copy(io.Discard, b.wire); rest != nil {
			err = rest
		}
	}
	if err != nil && err != io.EOF {
		err = b.explain(err)
	}
	return n, err
}

// Close gives the decoders back.
func (b *decoding) Close() error {
	for _, release := range b.release {
		release()
	}
	b.release = nil
	return nil
}

// explain says whether the body could not be had, or could not be decoded.
func (b *decoding) explain(err error) error {
	if failed := b.wire.source.err; failed != nil && failed != errBloated {
		return failed
	}
	return b.damaged(err)
}

func (b *decoding) damaged(err error) error {
	return &fetchError{"the body cannot be decoded (Content-Encoding: " + b.what + ")", decorum.Malformed, err}
}
