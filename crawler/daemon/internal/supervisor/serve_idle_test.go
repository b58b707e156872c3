package supervisor

import (
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// A project that is paused keeps no connection open: hosts would wait for it in vain,
// and one that is edited often would have those of many crawls. By themselves they
// stay for longer than await does.
func TestServePausesWithoutConnections(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000), daemontest.ChainSite("b.example", 1000))
	var open atomic.Int32
	s := httptest.NewUnstartedServer(f.Web)
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
	f.Addr = s.Listener.Addr().String()
	f.PutProjectFile("p", f.ProjectYAML("http://a.example/0, http://b.example/0", "politeness: {delay: 10ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	f.start(true)
	daemontest.WaitUntil(t, "each host has a connection", func() bool { return open.Load() == 2 })
	f.DoActions("p", api.ActionPause)
	f.WaitForState("p", api.StatePaused)
	daemontest.WaitUntil(t, "no connection is open", func() bool { return open.Load() == 0 })
	f.DoActions("p", api.ActionResume)
	daemontest.WaitUntil(t, "it goes on", func() bool { return open.Load() == 2 })
}

// A project that has stopped takes no memory for its crawl: neither for the rules of
// hosts, nor for what it has seen lately.
func TestServeStopsWithoutMemory(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("p", f.ProjectYAML("http://a.example/0", "politeness: {delay: 10ms, adaptive: 0}", "scope: {max_depth: 2000}"))
	f.start(true)
	f.WaitForState("p", api.StateRunning)
	r, err := f.runners.find("p")
	if err != nil {
		t.Fatal(err)
	}
	var crawl weak.Pointer[crawler.Crawler]
	daemontest.WaitUntil(t, "it crawls", func() bool {
		r.engine.mu.Lock()
		defer r.engine.mu.Unlock()
		if r.engine.engine == nil {
			return false
		}
		crawl = weak.Make(r.engine.engine.Crawler)
		return crawl.Value() != nil
	})
	f.DoActions("p", api.ActionStop)
	f.WaitForState("p", api.StateStopped)
	daemontest.WaitUntil(t, "its crawl is collected", func() bool {
		runtime.GC()
		return crawl.Value() == nil
	})
}
