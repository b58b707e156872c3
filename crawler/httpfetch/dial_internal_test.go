package httpfetch

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestTLSHandshakeTimeout: a handshake that the server does not answer ends at its time limit or with the visit,
// whichever comes first. The error says which, and nothing else.
func TestTLSHandshakeTimeout(t *testing.T) {
	t.Parallel()
	errStopped := errors.New("stopped")
	for _, tt := range []struct {
		limit time.Duration // of the visit
		want  error
	}{{time.Hour, timeoutError{"TLS handshake", tlsHandshakeTimeout}}, {time.Second, errStopped}} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server)
			connect := func(context.Context, string, string) (net.Conn, error) { return client, nil }
			dial := dialTLS(connect, &tls.Config{})
			ctx, cancel := context.WithTimeoutCause(t.Context(), tt.limit, errStopped)
			defer cancel()
			if _, err := dial(ctx, "tcp", "site.test:443"); err != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if _, err := client.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("the connection is open: %v", err)
			}
		})
	}
}

// TestForgetTLSSession: forgetTLSSession drops the session of the given host and no other, also if the host has
// none.
func TestForgetTLSSession(t *testing.T) {
	t.Parallel()
	n, err := newCrawlDialer(Config{MaxTLSSessions: 2, IdleConns: NewIdleConns(0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.test", "::1"} { // as the ServerName of a connection
		n.tlsSessions.Put(name, new(tls.ClientSessionState))
	}
	for range 2 {
		n.forgetTLSSession("a.test")
		n.forgetTLSSession("other.test")
	}
	n.tlsSessions.Put("b.test", new(tls.ClientSessionState))
	for name, want := range map[string]bool{"a.test": false, "b.test": true, "::1": true} {
		if session, _ := n.tlsSessions.Get(name); (session != nil) != want {
			t.Errorf("%s has a session: %v, want %v", name, !want, want)
		}
	}
	n.forgetTLSSession("[::1]")
	if session, _ := n.tlsSessions.Get("::1"); session != nil {
		t.Error("the session of an IPv6 address is kept")
	}
}
