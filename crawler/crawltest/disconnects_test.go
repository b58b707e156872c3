package crawltest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// A heldListener accepts no connection before it is released.
type heldListener struct {
	net.Listener
	released chan struct{}
}

func (l *heldListener) Accept() (net.Conn, error) {
	<-l.released
	return l.Listener.Accept()
}

// requestAndVanish sends a request to a server and ends like a killed process: it does not wait until
// the server reads the request.
func requestAndVanish(t *testing.T, addr, url string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, path := splitOriginAndPath(url)
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, hostOf(url)); err != nil {
		t.Fatal(err)
	}
}

// AwaitDisconnects waits even if the server has not yet accepted the connection of a client that is
// gone. The judge then counts the client's request as one before the restart.
func TestAwaitDisconnects(t *testing.T) {
	web := New(Site{Host: "a.example", Fallback: StaticPage(Text("page"))})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	s := web.StartOn(&heldListener{tcp, released})
	defer s.Close()
	defer release()

	requestAndVanish(t, s.Addr, "http://a.example/robots.txt")
	requestAndVanish(t, s.Addr, "http://a.example/page")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.AwaitDisconnects(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the server accepts: got %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	if err := s.AwaitDisconnects(t.Context()); err != nil {
		t.Fatal(err)
	}
	restart := time.Now()
	log := web.Log()
	for _, x := range log {
		if x.End.IsZero() {
			t.Errorf("%s goes on", x.URL)
		}
	}
	if len(log) != 2 {
		t.Errorf("the log has %d requests, want 2", len(log))
	}

	transport := s.Transport()
	defer transport.CloseIdleConnections()
	if _, err := get(t.Context(), transport, "http://a.example/page"); err != nil {
		t.Fatal(err)
	}
	r := web.Judge(JudgeOptions{RestartTimes: []time.Time{restart}})
	if r.CountViolationsOfRule(Duplicate) != 0 || r.RestartRefetches != 1 {
		t.Errorf("%d pages requested again after the restart, want 1:\n%s", r.RestartRefetches, r)
	}
}

// AwaitDisconnects waits for connected clients until its context is done.
func TestAwaitDisconnectsOfLiveClient(t *testing.T) {
	s, transport := startServer(t, smallWeb())
	if _, err := get(t.Context(), transport, "http://a.example/"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.AwaitDisconnects(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while a connection is open: got %v, want %v", err, context.DeadlineExceeded)
	}
	transport.CloseIdleConnections()
	if err := s.AwaitDisconnects(t.Context()); err != nil {
		t.Errorf("without an open connection: %v", err)
	}
}

// AwaitDisconnects does not wait after the server is closed.
func TestAwaitDisconnectsOfClosedServer(t *testing.T) {
	s, _ := startServer(t, smallWeb())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitDisconnects(t.Context()); err == nil {
		t.Error("got no error, want one, because the server accepts no connections")
	}
}
