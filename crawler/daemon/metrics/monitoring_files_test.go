package metrics_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/metrics"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
)

var (
	descriptionPattern = regexp.MustCompile(`^Desc\{fqName: "(\w+)".*constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	labelPattern       = regexp.MustCompile(`(\w+)=`)
	metricPattern      = regexp.MustCompile(`\b((?:decorum|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	suffixPattern      = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// labelsByMetric returns the labels of each metric of a daemon.
func labelsByMetric(t *testing.T) map[string][]string {
	t.Helper()
	m := metrics.New(staticProjects(), slog.New(slog.DiscardHandler))
	m.RegisterBodyMemory(bodymem.NewDefault())
	m.RegisterIdleConns(httpfetch.NewDefaultIdleConns())
	m.RegisterBrakes(func(context.Context) ([]api.Brake, error) { return nil, nil })
	labels := map[string][]string{}
	for _, text := range m.Descriptions() {
		d := descriptionPattern.FindStringSubmatch(text)
		if d == nil {
			t.Fatalf("%s does not match %s", text, descriptionPattern)
		}
		labels[d[1]] = strings.Split(d[3], ",")
		for _, constant := range labelPattern.FindAllStringSubmatch(d[2], -1) {
			labels[d[1]] = append(labels[d[1]], constant[1])
		}
	}
	return labels
}

// readDeployFile returns a file of the folder deploy. In JSON, quotes in strings are read as quotes.
func readDeployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".json") && !json.Valid(text) {
		t.Fatalf("%s is not JSON", name)
	}
	return strings.ReplaceAll(string(text), `\"`, `"`)
}

// TestMonitoringFiles checks that the metrics and labels that the alert rules and the dashboard query exist.
func TestMonitoringFiles(t *testing.T) {
	labels := labelsByMetric(t)
	for name, minimum := range map[string]int{"prometheus-alerts.yml": 13, "prometheus-alerts-test.yml": 5,
		"grafana-dashboard.json": 25} {
		queried := map[string]bool{}
		for _, m := range metricPattern.FindAllStringSubmatch(readDeployFile(t, name), -1) {
			metric := m[1]
			if labels[metric] == nil {
				metric = suffixPattern.ReplaceAllString(metric, "")
			}
			known := labels[metric]
			if known == nil {
				t.Errorf("%s queries %s: there is no such metric", name, m[1])
			}
			queried[metric] = true
			for _, l := range labelPattern.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(append([]string{"instance", "job"}, known...), l[1]) {
					t.Errorf("%s queries %s: the metric has no label %s", name, m[0], l[1])
				}
			}
		}
		if len(queried) < minimum {
			t.Errorf("%s queries %d metrics: where are the others?", name, len(queried))
		}
	}
}

// TestDocumentedMetrics checks that docs/operators.md names every metric of a daemon.
func TestDocumentedMetrics(t *testing.T) {
	page := readDeployFile(t, "../docs/operators.md")
	for metric := range labelsByMetric(t) {
		short, ours := strings.CutPrefix(metric, "decorum_")
		if ours && !strings.Contains(page, "`"+short+"`") && !strings.Contains(page, "`"+short+"{") {
			t.Errorf("docs/operators.md does not name %s", metric)
		}
	}
}
