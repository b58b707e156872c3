package daemon

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A project that is paused keeps no connection open: hosts would wait for it in vain,
// and one that is edited often would have those of many crawls. By themselves they
// stay for longer than await does.
func TestServePausesWithoutConnections(t *testing.T) {
	f := farmOf(t, chain("a.example", 1000), chain("b.example", 1000))
	var open atomic.Int32
	s := httptest.NewUnstartedServer(f.web)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	s.Start()
	defer s.Close()
	f.addr = s.Listener.Addr().String()
	f.put("p", f.file("http://a.example/0, http://b.example/0", "politeness: {delay: 10ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	f.start(true)
	await(t, "each host has a connection", func() bool { return open.Load() == 2 })
	f.do("p", api.Pause)
	f.becomes("p", api.Paused)
	await(t, "no connection is open", func() bool { return open.Load() == 0 })
	f.do("p", api.Resume)
	await(t, "it goes on", func() bool { return open.Load() == 2 })
}
