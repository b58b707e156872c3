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

// TestTLSHandshakeTimeout: a handshake that the server does not answer ends at its time limit, and when the
// visit ends before. The error says which, and nothing else.
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
