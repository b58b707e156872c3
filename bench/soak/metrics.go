package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metricFamilies are a daemon's metrics at a moment.
type metricFamilies map[string]*dto.MetricFamily

// scrapeMetrics asks the daemon for its metrics.
func (d *daemonProcess) scrapeMetrics(ctx context.Context) (metricFamilies, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.Server+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+d.Token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics: %s: %s", res.Status, text)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(string(text)))
}

// sumSeries adds up all series of a name.
func (n metricFamilies) sumSeries(name string) (total float64) {
	for _, v := range n.sumByLabel(name, "") {
		total += v
	}
	return total
}

// sumByLabel adds up the series of a name by the value of a label.
func (n metricFamilies) sumByLabel(name, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, m := range n[name].GetMetric() {
		value := ""
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				value = l.GetValue()
			}
		}
		sums[value] += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sums
}

// A sample is what a daemon needed at a moment, and had done by then.
type sample struct {
	Elapsed         time.Duration // from the start of the run
	Values          [len(sampledSeries)]float64
	VisitsPerSecond float64 // since the sample before, a second
	Queued          float64
}

// sampledSeries are what a daemon must not need more of the longer it runs.
var sampledSeries = [...]struct {
	name, unit string
	value      func(metricFamilies) float64
}{
	{"goroutines", "", func(n metricFamilies) float64 { return n.sumSeries("go_goroutines") }},
	// The collector aims at twice what is alive after each of its rounds (GOGC=100).
	{"live heap", "MiB", func(n metricFamilies) float64 { return n.sumSeries("go_memstats_next_gc_bytes") / 2 / mebibyte }},
	{"heap in use", "MiB", func(n metricFamilies) float64 { return n.sumSeries("go_memstats_heap_inuse_bytes") / mebibyte }},
	{"RSS, anonymous", "MiB", func(n metricFamilies) float64 { return n.sumSeries(anonymousRSS) / mebibyte }},
	{"open files", "", func(n metricFamilies) float64 { return n.sumSeries("process_open_fds") }},
}

const (
	mebibyte     = 1 << 20
	anonymousRSS = "rss_anonymous" // among the numbers, though the daemon does not tell it
)

// addAnonymousRSS adds what only the system knows: memory without that of mapped files,
// which the system takes away when it has better use for it.
func (n metricFamilies) addAnonymousRSS(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(text), "RssAnon:")
	kib, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(after, "kB", 2)[0]), 64)
	if err != nil {
		return fmt.Errorf("no RssAnon in /proc/%d/status: %w", pid, err)
	}
	bytes := kib * 1024
	n[anonymousRSS] = &dto.MetricFamily{Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &bytes}}}}
	return nil
}
