package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/supervisor/supervisortest"
	"github.com/decorum-crawler/decorum/internal/connlimit"
)

// openServer serves a daemon without projects until the test ends.
func openServer(t *testing.T, opts ListenOptions) (*Server, string) {
	t.Helper()
	f := supervisortest.NewFixture(t)
	f.Start(false)
	g, err := OpenListeners(t.Context(), opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.AttachDaemon(f.Supervisor, opts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := readOrCreateToken(f.Supervisor.DataDir.Path(TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	return g, token
}

// With a certificate, browsers speak HTTP/2 to the daemon, other clients HTTP/1.1,
// and the cookie of a login is for TLS only.
func TestDaemonServerTLS(t *testing.T) {
	dir := t.TempDir()
	opts := ListenOptions{addr: "127.0.0.1:0", certFile: filepath.Join(dir, "cert.pem"),
		keyFile: filepath.Join(dir, "key.pem")}
	writeCertificate(t, &opts, 1, time.Now())
	g, token := openServer(t, opts)
	for major, h2 := range map[int]bool{1: false, 2: true} {
		transport := &http.Transport{ForceAttemptHTTP2: h2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer transport.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://"+g.APIListener.Addr().String()+"/login",
			strings.NewReader(url.Values{"token": {token}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("HTTP/%d: %v", major, err)
		}
		res.Body.Close()
		if c := res.Cookies(); res.ProtoMajor != major || res.StatusCode != http.StatusNoContent ||
			len(c) != 1 || !c[0].Secure {
			t.Errorf("HTTP/%d: %s by %s, cookies %v", major, res.Status, res.Proto, c)
		}
	}
}

// However many connections callers hold to the page about the bot, the process keeps descriptors for the
// crawl: every caller is answered, and the connections that have been idle longest are closed.
func TestBotListenerIsBounded(t *testing.T) {
	t.Parallel()
	const limit, callers = 4, 20
	opts := ListenOptions{addr: "127.0.0.1:0", botPageAddr: "127.0.0.1:0",
		listenerConnectionLimits: listenerConnectionLimits{maxBot: limit,
			Limits: connlimit.Limits{UntrustedRequestTimeout: time.Hour}}}
	g, _ := openServer(t, opts)
	closed := make(chan int, callers)
	for i := range callers {
		c, err := net.Dial("tcp", g.botListener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, "GET /bot HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer := bufio.NewReader(c)
		res, err := http.ReadResponse(answer, nil)
		if err != nil {
			t.Fatalf("caller %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatalf("caller %d: %v", i, err)
		}
		go func() { _, _ = answer.ReadByte(); closed <- i }()
	}
	for range callers - limit {
		if i := <-closed; i >= callers-limit {
			t.Errorf("the connection of caller %d is closed, though others have been idle longer", i)
		}
	}
}

// TestServeEndsWithItsAPIListener: if the listener of the API fails, Serve ends on all listeners, so that the
// daemon can release its directory, with its lock and its URL.
func TestServeEndsWithItsAPIListener(t *testing.T) {
	f := supervisortest.NewFixture(t)
	f.Start(false)
	opts := ListenOptions{addr: "127.0.0.1:0", botPageAddr: "127.0.0.1:0"}
	g, err := OpenListeners(t.Context(), opts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.AttachDaemon(f.Supervisor, opts); err != nil {
		t.Fatal(err)
	}
	if g.socketListener == nil {
		t.Error("the daemon has no socket: the test has lost its point")
	}
	if err := g.APIListener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Serve(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve returned %v, want the failure of the listener", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
