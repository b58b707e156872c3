// Witness is a reverse proxy that records each exchange of a crawler with a
// site: it passes everything on unchanged, and counts on the site's side of
// the wire, so that every crawler is measured alike.
//
//	witness BACKEND LISTEN LOG
//
// Each line of LOG is one exchange, with tabs in between: the time in seconds
// since 1970, the method, the request target as it came, the status, the media
// type and the SHA-256 of the body.
package main

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"log"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: witness BACKEND LISTEN LOG")
	}
	backend, err := url.Parse(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.OpenFile(os.Args[3], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	w := &witness{log: file}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			r.Out.Host = r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery // the proxy would drop what it cannot parse
		},
		ModifyResponse: w.watch,
	}
	log.Fatal(http.ListenAndServe(os.Args[2], proxy))
}

type witness struct {
	mu  sync.Mutex // serialises the lines of log
	log io.Writer
}

// watch hashes the body of r as it passes, and writes the line of the exchange
// at the end of the body.
func (w *witness) watch(r *http.Response) error {
	r.Body = &hashedBody{ReadCloser: r.Body, hash: sha256.New(), onClose: func(sum []byte) {
		media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		w.mu.Lock()
		defer w.mu.Unlock()
		_, err := fmt.Fprintf(w.log, "%.3f\t%s\t%s\t%d\t%s\t%x\n", float64(time.Now().UnixMilli())/1000,
			r.Request.Method, r.Request.URL.RequestURI(), r.StatusCode, media, sum)
		if err != nil {
			log.Fatal(err) // a log with gaps proves nothing
		}
	}}
	return nil
}

type hashedBody struct {
	io.ReadCloser
	hash    hash.Hash
	once    sync.Once
	onClose func(sum []byte)
}

func (b *hashedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.hash.Write(p[:n])
	return n, err
}

func (b *hashedBody) Close() error {
	b.once.Do(func() { b.onClose(b.hash.Sum(nil)) })
	return b.ReadCloser.Close()
}
