package supervisor

import (
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// A daemon that starts while Redis does not answer waits for it. A project whose file names another
// place for its state does not start again without its state.
func TestServeWaitsForRedis(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	f := newDaemonFixture(t, daemontest.ShopSite())
	inFiles := f.ProjectYAML("http://shop.example/", daemontest.NoDelayYAML)
	f.PutProjectFile("shop", inFiles+daemontest.RedisField(c, ", durability: none"))
	c.KillNode(c.Nodes()[0])
	f.start(true)
	waits := func() bool {
		p := f.GetProject("shop")
		return p.State == api.StateRunning && strings.Contains(p.StateReason, "do not answer") &&
			strings.Contains(p.StateReason, c.Addrs()[0])
	}
	daemontest.WaitUntil(t, "the project waits, and names Redis", waits)
	if err := f.CheckReady(t.Context()); err == nil || !strings.Contains(err.Error(), "do not answer") {
		t.Errorf("ready: %v", err)
	}
	if _, err := f.inspector("shop").ExplainURL(t.Context(), "http://shop.example/"); err == nil ||
		!strings.Contains(err.Error(), "do not answer") {
		t.Errorf("explain: %v", err)
	}
	c.StartKilledNode(c.Nodes()[0])
	f.WaitForState("shop", api.StateDone)
	daemontest.WaitUntil(t, "it says what it holds", func() bool {
		p := f.GetProject("shop")
		return p.StateReason == "" && p.FrontierCounts.SeenURLs > 0
	})
	if err := f.CheckReady(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}

	f.PutProjectFile("shop", inFiles)
	f.ReloadAndFind("shop")
	if p := f.WaitForState("shop", api.StateFailed); !strings.Contains(p.StateReason, "is in Redis") {
		t.Errorf("it failed for %q", p.StateReason)
	}
	f.PutProjectFile("shop", inFiles+daemontest.RedisField(c, ", durability: none, partitions: 9"))
	f.ReloadAndFind("shop")
	daemontest.WaitUntil(t, "it says what is wrong", func() bool {
		return strings.Contains(f.GetProject("shop").StateReason, "was made with partitions 64")
	})
	f.PutProjectFile("shop", inFiles+daemontest.RedisField(c, ", durability: none, lease: 5s"))
	f.ReloadAndFind("shop")
	f.WaitForState("shop", api.StateDone)
}

// A project that is resumed beyond a limit continues, even if its run is replaced before the first run
// has reset the counts in Redis.
func TestServeGoesOnBeyondALimit(t *testing.T) {
	t.Parallel()
	c := redistest.StartClusterForTest(t, 1, 0)
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000))
	text := f.ProjectYAML("http://a.example/0", "politeness: {delay: 1ms, adaptive: 0}", "limits: {pages: 5}",
		daemontest.RedisField(c, ", durability: none, lease: 2s"))
	f.PutProjectFile("shop", text)
	f.start(true)
	f.WaitForState("shop", api.StatePaused)
	c.KillNode(c.Nodes()[0])
	f.DoActions("shop", api.ActionResume)
	r, err := f.runners.find("shop")
	if err != nil {
		t.Fatal(err)
	}
	runs := func() bool {
		return r.state.isRunning()
	}
	daemontest.WaitUntil(t, "a run has begun", runs)
	time.Sleep(50 * time.Millisecond) // the run reads the command meanwhile
	f.PutProjectFile("shop", text+"scope: {max_depth: 500}\n")
	f.ReloadAndFind("shop")
	c.StartKilledNode(c.Nodes()[0])
	daemontest.WaitUntil(t, "it pauses again, when it has visited as many", func() bool {
		p := f.GetProject("shop")
		return p.State == api.StatePaused && p.Stats.Pages >= 5 && len(daemontest.RequestedPages(f.Web.Log())) == 10
	})
}
