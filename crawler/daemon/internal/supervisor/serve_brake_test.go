package supervisor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/daemontest"
)

// A brake that is set before a pause, and lifted during the pause or after it, does not hold the host
// once the project has resumed.
func TestServeLiftsABrakeOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"during the pause", "after it"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000))
			f.PutProjectFile("a", f.ProjectYAML("http://a.example/0", "politeness: {delay: 20ms, adaptive: 0}",
				"scope: {max_depth: 2000}"))
			f.start(true)
			daemontest.WaitUntil(t, "a visits pages", func() bool { return f.GetProject("a").Stats.Pages > 2 })
			if err := f.SetBrake(t.Context(), api.Brake{Host: "a.example", Stop: true, Reason: "test"}); err != nil {
				t.Fatal(err)
			}
			daemontest.WaitUntil(t, "the host is suspended", func() bool {
				return f.GetProject("a").FrontierCounts.SuspendedURLs > 0
			})
			f.DoActions("a", api.ActionPause)
			f.WaitForState("a", api.StatePaused)
			liftBrake := func() {
				if err := f.LiftBrake(t.Context(), "a.example"); err != nil {
					t.Fatal(err)
				}
			}
			if when == "during the pause" {
				liftBrake()
			}
			f.DoActions("a", api.ActionResume)
			f.WaitForState("a", api.StateRunning)
			if when == "after it" {
				daemontest.WaitUntil(t, "the host is suspended again", func() bool {
					return f.GetProject("a").FrontierCounts.SuspendedURLs > 0
				})
				liftBrake()
			}
			before := f.GetProject("a").Stats.Pages
			daemontest.WaitUntil(t, "the host is visited again", func() bool {
				return f.GetProject("a").Stats.Pages > before+2
			})
		})
	}
}

// TestMetricsOfBrakes checks that the metrics of a daemon count its brakes, and what they do to a project.
func TestMetricsOfBrakes(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, daemontest.ChainSite("a.example", 1000))
	f.PutProjectFile("a", f.ProjectYAML("http://a.example/0", "scope: {max_depth: 2000}"))
	f.start(true)
	if err := f.SetBrake(t.Context(), api.Brake{Host: "a.example", Stop: true, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	daemontest.WaitUntil(t, "the metrics show the brake and the suspended URL", func() bool {
		w := httptest.NewRecorder()
		f.Metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, series := range []string{`decorum_brakes{effect="stop"} 1`, `decorum_brakes{effect="slow"} 0`,
			`decorum_project_urls{project="a",state="suspended"} 1`, `decorum_project_hosts{project="a",state="due"} 0`,
			`decorum_project_state{project="a",state="running"} 1`, "decorum_build_info{"} {
			if !strings.Contains(w.Body.String(), "\n"+series) {
				return false
			}
		}
		return true
	})
}
