package httpfetch

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// BenchmarkGunzipBody decodes a page of 138 KiB, the median of the web, as the body of a response.
func BenchmarkGunzipBody(b *testing.B) {
	var page, encoded bytes.Buffer
	for i := 0; page.Len() < 138<<10; i++ {
		fmt.Fprintf(&page, "<li class=item><a href=/page/%d title=%q>%x</a></li>\n", i, "an item of the list", i*i*7919)
	}
	zw := gzip.NewWriter(&encoded)
	zw.Write(page.Bytes())
	if err := zw.Close(); err != nil {
		b.Fatal(err)
	}
	decoders := newDecoderPools()
	b.SetBytes(int64(page.Len()))
	b.ReportAllocs()
	for b.Loop() {
		res := &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}},
			Body: io.NopCloser(bytes.NewReader(encoded.Bytes()))}
		body, err := decoders.openBody(res, 10<<20, func(int64) error { return nil })
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, body); n != int64(page.Len()) || err != nil {
			b.Fatalf("read %d of %d bytes: %v", n, page.Len(), err)
		}
		body.Close()
	}
}
