package httpfetch_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/tickettest"
)

// writeUnsizedBody sends chunked bodies. The path names the letter that a body repeats, the query
// its length.
func writeUnsizedBody(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.RawQuery)
	io.WriteString(w, "<")
	w.(http.Flusher).Flush()
	w.Write(bytes.Repeat([]byte(path.Base(r.URL.Path)), n-1))
}

// TestBodiesOfUnknownLength: a body stays unchanged when a later visit uses the pooled buffer that
// it was read through, even if the body outgrew that buffer.
func TestBodiesOfUnknownLength(t *testing.T) {
	site := startServer(t, writeUnsizedBody)
	f, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, AllowPrivate: true})
	must(t, err)
	sizes := []int{20_000, 100, 1 << 20, 30_000, 1, 300_000}
	bodies := make([][]byte, len(sizes))
	for i, n := range sizes {
		res, err := f.Fetch(t.Context(), pageTicket(t, fmt.Sprintf("%s/%c?%d", site, 'a'+i, n)))
		must(t, err)
		bodies[i] = res.Body
	}
	for i, n := range sizes {
		if want := "<" + string(bytes.Repeat([]byte{'a' + byte(i)}, n-1)); string(bodies[i]) != want {
			t.Errorf("body %d has %d bytes, want %d of %c", i, len(bodies[i]), n, 'a'+i)
		}
	}
}

// BenchmarkFetch measures a body of 20 KB with and without a Content-Length.
func BenchmarkFetch(b *testing.B) {
	page := strings.Repeat("<p>All happy families are alike.</p>", 569)
	for name, length := range map[string]int64{"sized": int64(len(page)), "chunked": -1} {
		b.Run(name, func(b *testing.B) {
			answer := roundTripFunc(func(r *http.Request) (*http.Response, error) {
				res := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/html"}}, Request: r,
					Body: io.NopCloser(strings.NewReader(page)), ContentLength: length}
				if length > 0 {
					res.Header["Content-Length"] = []string{strconv.Itoa(len(page))}
				}
				return res, nil
			})
			f, err := httpfetch.New(httpfetch.Config{UserAgent: userAgent, Transport: answer})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				tickettest.Use(b, tickettest.Config{URL: "http://a.test/page"}, func(ticket crawler.Ticket) {
					b.StartTimer()
					defer b.StopTimer()
					if _, err := f.Fetch(b.Context(), ticket); err != nil {
						b.Fatal(err)
					}
				})
				b.StartTimer()
			}
		})
	}
}
