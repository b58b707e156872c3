package daemon

import (
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A brake that was put on before a pause, and is lifted during it or after, keeps
// nobody from the host when the project goes on.
func TestServeLiftsABrakeOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"during the pause", "after it"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			f := newDaemonFixture(t, chainSite("a.example", 1000))
			f.putProjectFile("a", f.projectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}", "scope: {max_depth: 2000}"))
			f.start(true)
			waitUntil(t, "a visits pages", func() bool { return f.getProject("a").Stats.Pages > 2 })
			if err := f.SetBrake(t.Context(), api.Brake{Host: "a.example", Stop: true, Reason: "test"}); err != nil {
				t.Fatal(err)
			}
			waitUntil(t, "the host is put off", func() bool { return f.getProject("a").FrontierCounts.SuspendedURLs > 0 })
			f.doActions("a", api.ActionPause)
			f.waitForState("a", api.StatePaused)
			liftBrake := func() {
				if err := f.LiftBrake(t.Context(), "a.example"); err != nil {
					t.Fatal(err)
				}
			}
			if when == "during the pause" {
				liftBrake()
			}
			f.doActions("a", api.ActionResume)
			f.waitForState("a", api.StateRunning)
			if when == "after it" {
				waitUntil(t, "the host is put off again", func() bool { return f.getProject("a").FrontierCounts.SuspendedURLs > 0 })
				liftBrake()
			}
			before := f.getProject("a").Stats.Pages
			waitUntil(t, "the host is visited again", func() bool { return f.getProject("a").Stats.Pages > before+2 })
		})
	}
}
