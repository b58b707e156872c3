package httpfetch_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/tickettest"
)

// encoders make each coding; raw is deflate without the zlib header.
var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw":     func(w io.Writer) io.WriteCloser { zw, _ := flate.NewWriter(w, 9); return zw },
	"br":      func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd":    func(w io.Writer) io.WriteCloser { zw, _ := zstd.NewWriter(w); return zw },
}

func encodeBody(t *testing.T, body []byte, codings ...string) []byte {
	t.Helper()
	for _, c := range codings {
		var b bytes.Buffer
		w := encoders[c](&b)
		_, err := w.Write(body)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		body = b.Bytes()
	}
	return body
}

// fetchPage fetches u from a loopback server with a page's ticket.
func fetchPage(t *testing.T, cfg httpfetch.Config, u string) (*decorum.Response, error) {
	t.Helper()
	cfg.UserAgent, cfg.AllowPrivate = userAgent, true
	fetcher, err := httpfetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return fetchInVisit(t, fetcher, tickettest.Config{URL: u})
}

// startServer returns the address of a server that answers every request with answer.
func startServer(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL + "/page"
}

func TestContentEncoding(t *testing.T) {
	page := []byte(strings.Repeat("<p>All happy families are alike.</p>", 100))
	for _, tt := range []struct {
		name   string
		header string
		body   []byte
		want   []byte
	}{
		{"none", "", page, page},
		{"identity", "identity", page, page},
		{"gzip", "gzip", encodeBody(t, page, "gzip"), page},
		{"by its old name, in capitals", "X-GZIP", encodeBody(t, page, "gzip"), page},
		{"in two members", "gzip", slices.Concat(encodeBody(t, page, "gzip"), encodeBody(t, page, "gzip")),
			slices.Concat(page, page)},
		{"gzip, and something else behind it", "gzip",
			slices.Concat(encodeBody(t, page, "gzip"), []byte("\x00\x00 0 rows")), page},
		{"gzip, and a byte behind it", "gzip", slices.Concat(encodeBody(t, page, "gzip"), []byte("\x1f")), page},
		{"deflate", "deflate", encodeBody(t, page, "deflate"), page},
		{"deflate without zlib", "deflate", encodeBody(t, page, "raw"), page},
		{"br", "br", encodeBody(t, page, "br"), page},
		{"zstd", "zstd", encodeBody(t, page, "zstd"), page},
		{"several in a row", "br, identity, zstd,gzip , deflate",
			encodeBody(t, page, "br", "zstd", "gzip", "raw"), page},
		{"several around a short text, and something else behind it", "zstd, gzip",
			slices.Concat(encodeBody(t, []byte("hi"), "zstd", "gzip"), []byte("\x00\x00 0 rows")), []byte("hi")},
		{"nothing encoded", "gzip", nil, nil},
		{"the encoding of nothing", "br", encodeBody(t, nil, "br"), nil},
		{"an unknown one", "utf-8", page, page},
		{"an unknown one among others", "gzip, compress", page, page},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header["Accept-Encoding"]; !slices.Equal(got, []string{"gzip, br, zstd, deflate"}) {
					t.Errorf("Accept-Encoding %q", got)
				}
				if tt.header != "" {
					w.Header().Set("Content-Encoding", tt.header)
				}
				w.Write(tt.body)
			})
			res, err := fetchPage(t, httpfetch.Config{}, u)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(res.Body, tt.want) || res.BodyLimitExceeded {
				t.Errorf("got %d bytes (truncated %v), want %d", len(res.Body), res.BodyLimitExceeded, len(tt.want))
			}
		})
	}
}

// TestDamagedEncoding: an undecodable body is an error of Kind Malformed, not half a page.
func TestDamagedEncoding(t *testing.T) {
	page := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		whole := encodeBody(t, page, coding)
		broken := bytes.Clone(whole)
		for i := len(broken) / 3; i < len(broken); i++ {
			broken[i] ^= 0x5a
		}
		for name, body := range map[string][]byte{"cut": whole[:len(whole)/2], "broken": broken,
			"something else": []byte("\x01\x02 is not it")} {
			u := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", coding)
				w.Write(body)
			})
			res, err := fetchPage(t, httpfetch.Config{}, u)
			if !errors.Is(err, decorum.Malformed) ||
				!strings.Contains(err.Error(), "the body cannot be decoded (Content-Encoding: "+coding+")") {
				t.Errorf("%s, %s: %v, %v; want Malformed", coding, name, res, err)
			}
		}
	}
	u := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip, gzip, gzip, gzip, gzip")
		w.Write(encodeBody(t, page, "gzip", "gzip", "gzip", "gzip", "gzip"))
	})
	if _, err := fetchPage(t, httpfetch.Config{}, u); !errors.Is(err, decorum.Malformed) {
		t.Errorf("five codings: %v, want Malformed", err)
	}
}
