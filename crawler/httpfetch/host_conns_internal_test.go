package httpfetch

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestOnlyServersClosesAreLearned: a connection that the server closes while it is idle says how long the
// server keeps connections. One that is closed without anything to read does not: net/http closes it after
// a response that was not read to its end.
func TestOnlyServersClosesAreLearned(t *testing.T) {
	for _, closedByServer := range []bool{false, true} {
		k := newConnKeeper(NewIdleConns(10), time.Minute)
		k.beginVisit("a.test")
		client, server := net.Pipe()
		c := k.add(client, "a.test", lookupResult{}, netip.Addr{})
		k.endVisit("a.test", func(t serverTimeout) serverTimeout { return t })
		if closedByServer {
			server.Close()
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Fatal("the connection is not at its end")
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if known, _ := k.serverTimeouts.Peek("a.test"); (known.closeCount == 1) != closedByServer {
			t.Errorf("closed by the server: %v; learned: %+v", closedByServer, known)
		}
		if n := k.idle.Len(); n != 0 || len(k.hosts) != 0 {
			t.Errorf("%d connections and %d hosts are kept, want none", n, len(k.hosts))
		}
		server.Close()
	}
}
