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

// A paused project closes its connections: hosts would hold them for nothing, and a project that is
// edited often would hold those of many crawls. Idle connections last longer than WaitUntil waits.
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
	f.PutProjectFile("p", f.ProjectYAML("http://a.example/0, http://b.example/0", "politeness: {delay: 10ms, "+
		"adaptive: 0}", "scope: {max_depth: 2000}"))
	f.start(true)
	daemontest.WaitUntil(t, "each host has a connection", func() bool { return open.Load() == 2 })
	f.DoActions("p", api.ActionPause)
	f.WaitForState("p", api.StatePaused)
	daemontest.WaitUntil(t, "no connection is open", func() bool { return open.Load() == 0 })
	f.DoActions("p", api.ActionResume)
	daemontest.WaitUntil(t, "the project continues", func() bool { return open.Load() == 2 })
}

// A stopped project frees the memory of its crawl, including the rules of hosts and the recently seen
// URLs.
func TestServeStopsWithoutMemory(t *testing.T) {
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("p", f.ProjectYAML("http://a.example/0", "politeness: {delay: 10ms, adaptive: 0}",
		"scope: {max_depth: 2000}"))
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
