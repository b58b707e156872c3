package collyfetch_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// persistentOptions returns WrapOptions of a crawl over real sockets, with its state in dir.
func persistentOptions(t *testing.T, server *httptest.Server, dir string) collyfetch.WrapOptions {
	t.Helper()
	o := quietOptions(nil)
	o.StateDir, o.Policy = dir, politeness.Policy{Delay: time.Millisecond}
	o.FetchConfig = httpfetch.Config{ConnectToRules: []string{"::" + server.Listener.Addr().String()},
		AllowPrivate: true}
	return o
}

// queuedRequest returns the request to a.test in the store in dir, as the next process that opens
// the store would find it.
func queuedRequest(t *testing.T, dir string) (found *storage.Entry) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "frontier.db"))
	must(t, err)
	file := filepath.Join(t.TempDir(), "copy.db")
	must(t, os.WriteFile(file, text, 0o600))
	s, err := bolt.Open(file, bolt.Options{})
	must(t, err)
	defer s.Close()
	u, err := decorum.ParseURL("http://a.test/")
	must(t, err)
	must(t, s.OriginURLsInState(t.Context(), u.Origin(), storage.StateQueued, func(e storage.Entry, _ time.Time) bool {
		if e.Request != nil {
			found = &e
		}
		return true
	}))
	return found
}

// TestMarkIsDurableBeforeAnyByte: when the first byte of a POST reaches the server, the store's
// file already marks it as sent, for a process that is started after this one was killed. One POST
// uses a new connection, the other a kept-open one.
func TestMarkIsDurableBeforeAnyByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var mu sync.Mutex // guards marks
	var marks []bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		e := queuedRequest(t, dir) // the server has yet to read the body
		mu.Lock()
		defer mu.Unlock()
		marks = append(marks, e != nil && e.Sent)
	}))
	defer server.Close()
	c := wrapCollector(t, colly.NewCollector(), persistentOptions(t, server, dir))
	must(t, c.PostRaw("http://a.test/", []byte("1")))
	must(t, c.PostRaw("http://a.test/", []byte("2")))
	mu.Lock()
	defer mu.Unlock()
	if len(marks) != 2 || !marks[0] || !marks[1] {
		t.Errorf("marked in the file when the request came: %v, want both", marks)
	}
}

// TestPostNotConnected: if no connection can be made, nothing is sent, the request is not marked as
// sent, and it is repeated later.
func TestPostNotConnected(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.Listener.Close()
		w.Header().Set("Connection", "close")
		http.NotFound(w, r) // no robots.txt, and soon no server
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "state")
	o := persistentOptions(t, server, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var acks []storage.Ack
	o.Hooks.Acked = func(a storage.Ack) {
		if a.Lease.Request != nil && a.Outcome != storage.Requeue {
			acks = append(acks, a)
			cancel()
		}
	}
	c := wrapCollector(t, colly.NewCollector(), o)
	var failed error
	c.OnError(func(_ *colly.Response, err error) { failed = err })
	must(t, c.Collector.PostRaw("http://a.test/", []byte("1")))
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if len(acks) != 1 || acks[0].Outcome != storage.RetryAt || c.Stats().Retries != 1 {
		t.Errorf("acks %+v, want one that puts it off", acks)
	}
	if failed == nil || errors.Is(failed, decorum.InDoubt) || !strings.Contains(failed.Error(), "refused") {
		t.Errorf("OnError got %v", failed)
	}
	if e := queuedRequest(t, dir); e == nil || e.Sent || string(e.Request.Body) != "1" {
		t.Errorf("queued is %+v, want the request, not sent", e)
	}
}

// TestPostIsNotRepeatedByTheTransport: net/http treats a request with this header as repeatable,
// and would send it again over another connection.
func TestPostIsNotRepeatedByTheTransport(t *testing.T) {
	var posts atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		posts.Add(1)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	}))
	defer server.Close()
	c := wrapCollector(t, colly.NewCollector(), persistentOptions(t, server, ""))
	var failed error
	c.OnError(func(_ *colly.Response, err error) { failed = err })
	h := http.Header{"Idempotency-Key": {"1"}, "User-Agent": {c.UserAgent}}
	must(t, c.Request(http.MethodPost, "http://a.test/", strings.NewReader("x"), nil, h))
	if n := posts.Load(); n != 1 || !errors.Is(failed, decorum.InDoubt) {
		t.Errorf("it came %d times, OnError got %v; want once, and in doubt", n, failed)
	}
}
