package connlimit

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A connPair holds both ends of a connection.
type connPair struct {
	client net.Conn
	server *Conn
}

// dial connects to l from a loopback address.
func dial(t *testing.T, l net.Listener, from string) connPair {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return connPair{client, server.(*Conn)}
}

// isOpen reports whether the server's end is open. The result is exact, because abort closes the
// connection before Accept returns.
func (p connPair) isOpen() bool {
	_, err := p.server.Conn.Write([]byte("x"))
	return !errors.Is(err, net.ErrClosed)
}

func listen(t *testing.T, l *Limiter) net.Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	return l.Listener(inner)
}

// areOpen reports for each connection whether it is open.
func areOpen(pairs ...connPair) (is []bool) {
	for _, p := range pairs {
		is = append(is, p.isOpen())
	}
	return is
}

func wantOpen(t *testing.T, got []bool, want ...bool) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("open connections: %v, want %v", got, want)
		}
	}
}

// A new connection of a network at its limit closes the one that has been idle longest, or a busy
// one if no other is idle, but not itself. Trusted connections do not count.
func TestLimitOfANetwork(t *testing.T) {
	limiter := New(Limits{MaxUntrustedPerNetwork: 2})
	l := listen(t, limiter)
	first, second := dial(t, l, "127.0.0.1"), dial(t, l, "127.0.0.1")
	first.server.BeginRequest()
	first.server.EndRequest() // now second has been idle longer
	third := dial(t, l, "127.0.0.1")
	wantOpen(t, areOpen(first, second, third), true, false, true)
	first.server.BeginRequest()
	fourth := dial(t, l, "127.0.0.1")
	wantOpen(t, areOpen(first, third, fourth), true, false, true)
	fourth.server.BeginRequest()
	fifth := dial(t, l, "127.0.0.1")
	wantOpen(t, areOpen(first, fourth, fifth), false, true, true) // all others were busy
	fourth.server.Trust()
	sixth, seventh := dial(t, l, "127.0.0.1"), dial(t, l, "127.0.0.1")
	wantOpen(t, areOpen(fourth, fifth, sixth, seventh), true, false, true, true)
	for _, p := range []connPair{fourth, sixth, seventh} {
		p.server.Close()
	}
	if limiter.untrustedCount != 0 || limiter.trustedCount != 0 || len(limiter.networks) != 0 {
		t.Errorf("after all are closed: %d untrusted, %d trusted, %d networks", limiter.untrustedCount,
			limiter.trustedCount, len(limiter.networks))
	}
}

// TestLimitOfAllUntrusted: at the limit of all untrusted connections, the network with most of them
// loses one. A flood does not close the only connection of another network.
func TestLimitOfAllUntrusted(t *testing.T) {
	l := listen(t, New(Limits{MaxUntrusted: 4, MaxUntrustedPerNetwork: 100}))
	other := dial(t, l, "127.0.0.2")
	for range 50 {
		dial(t, l, "127.0.0.1")
	}
	wantOpen(t, areOpen(other), true)
	a := dial(t, l, "127.0.0.3")
	b := dial(t, l, "127.0.0.4") // now there are as many networks as connections
	wantOpen(t, areOpen(other, a, b), true, true, true)
	dial(t, l, "127.0.0.5")
	wantOpen(t, areOpen(other, a, b), false, true, true)
}

// While MaxTrusted connections are trusted, others stay untrusted.
func TestLimitOfTrusted(t *testing.T) {
	l := listen(t, New(Limits{MaxTrusted: 1, MaxUntrustedPerNetwork: 1}))
	first := dial(t, l, "127.0.0.1")
	first.server.Trust()
	first.server.Trust()
	second := dial(t, l, "127.0.0.1")
	second.server.Trust()
	third := dial(t, l, "127.0.0.1")
	wantOpen(t, areOpen(first, second, third), true, false, true)
	first.server.Close()
	third.server.Trust()
	fourth, fifth := dial(t, l, "127.0.0.1"), dial(t, l, "127.0.0.1")
	wantOpen(t, areOpen(third, fourth, fifth), true, false, true)
}

// An untrusted connection has UntrustedRequestTimeout to send its next request. The time to serve a
// request does not count, and a trusted connection has no limit here.
func TestUntrustedRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := New(Limits{UntrustedRequestTimeout: 10 * time.Second})
		closed := func(c net.Conn) <-chan time.Duration {
			begin, at := time.Now(), make(chan time.Duration, 1)
			go func() { _, _ = io.Copy(io.Discard, c); at <- time.Since(begin) }()
			return at
		}
		connect := func() (*Conn, <-chan time.Duration) {
			client, server := net.Pipe()
			return limiter.addConnAndEvictExcess(server), closed(client)
		}
		_, idle := connect()
		busy, busyEnd := connect()
		trusted, trustedEnd := connect()
		trusted.Trust()
		time.Sleep(9 * time.Second)
		busy.BeginRequest()
		time.Sleep(time.Minute)
		busy.EndRequest()
		time.Sleep(time.Minute)
		trusted.Close()
		for what, x := range map[string]struct {
			got  <-chan time.Duration
			want time.Duration
		}{"idle": {idle, 10 * time.Second}, "busy": {busyEnd, 79 * time.Second},
			"trusted": {trustedEnd, 129 * time.Second}} {
			if got := <-x.got; got != x.want {
				t.Errorf("the %s connection is closed after %v, want %v", what, got, x.want)
			}
		}
	})
}

// If the process has no file descriptors left, Accept closes an untrusted connection. Without one, it
// returns an error that net/http treats as temporary.
func TestNoDescriptors(t *testing.T) {
	limiter := New(Limits{})
	l := listen(t, limiter)
	limitDescriptors(t)
	untrusted := dial(t, l, "127.0.0.1")
	waiting, err := net.Dial("tcp", l.Addr().String()) // the kernel connects it before Accept
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	another, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		defer f.Close()
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatalf("with an untrusted connection: %v", err)
	}
	defer c.Close()
	wantOpen(t, areOpen(untrusted), false)
	c.(*Conn).Trust()
	_, err = l.Accept()
	var temporary interface{ Temporary() bool }
	if !errors.As(err, &temporary) || !temporary.Temporary() {
		t.Errorf("without an untrusted connection: %v", err)
	}
}

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.7:80": "192.0.2.7/32", "[::ffff:192.0.2.7]:80": "192.0.2.7/32",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64", "@": "@",
	} {
		if got := NetworkPrefix(remote); got != want {
			t.Errorf("the network of %s is %s, want %s", remote, got, want)
		}
	}
}
