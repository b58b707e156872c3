package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
)

// The handler reads the state of the projects at each scrape.
func ExampleMetrics_Handler() {
	m := metrics.New(func(context.Context) ([]api.Project, error) {
		return []api.Project{{Name: "books", State: api.StateRunning,
			FrontierCounts: api.FrontierCounts{QueuedURLs: 42}}}, nil
	}, slog.Default())

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "decorum_queued ") {
			fmt.Print(line)
		}
	}
	// Output:
	// decorum_queued 42
}
