// Package testlisten accepts connections for tests whose servers speak for themselves. Only tests import it.
package testlisten

import (
	"net"
	"testing"
)

// Listen listens on a TCP address of this machine until the test ends.
func Listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Serve calls serve for each connection to l, in a new goroutine, until l is closed.
func Serve(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go serve(c)
	}
}
