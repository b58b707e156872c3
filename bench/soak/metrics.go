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

// metricFamilies are a daemon's metrics at one moment, by name.
type metricFamilies map[string]*dto.MetricFamily

// scrapeMetrics fetches the daemon's metrics.
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

// sumSeries returns the sum of all series with a name.
func (n metricFamilies) sumSeries(name string) (total float64) {
	for _, v := range n.sumByLabel(name, "") {
		total += v
	}
	return total
}

// sumByLabel returns the sums of the series with a name, by the value of a label. Series without
// the label count as "".
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

// A sample has the figures of the daemon at one moment.
type sample struct {
	Elapsed         time.Duration               // since the start of the run
	Values          [len(sampledSeries)]float64 // of sampledSeries, in the same order
	VisitsPerSecond float64                     // since the sample before
	Queued          float64                     // URLs in queues
}

// sampledSeries are the resources of the daemon whose use must not grow with time.
var sampledSeries = [...]struct {
	name, unit string
	value      func(metricFamilies) float64
}{
	{"goroutines", "", func(n metricFamilies) float64 { return n.sumSeries("go_goroutines") }},
	// The collector's target is twice the heap that was live after the last collection (GOGC=100).
	{"live heap", "MiB", func(n metricFamilies) float64 {
		return n.sumSeries("go_memstats_next_gc_bytes") / 2 / mebibyte
	}},
	{"heap in use", "MiB", func(n metricFamilies) float64 {
		return n.sumSeries("go_memstats_heap_inuse_bytes") / mebibyte
	}},
	{"RSS, anonymous", "MiB", func(n metricFamilies) float64 { return n.sumSeries(anonymousRSS) / mebibyte }},
	{"open files", "", func(n metricFamilies) float64 { return n.sumSeries("process_open_fds") }},
}

const (
	mebibyte     = 1 << 20
	anonymousRSS = "rss_anonymous" // name of the figure of addAnonymousRSS, which is not a metric of the daemon
)

// addAnonymousRSS adds the resident memory of a process without mapped files, from /proc. The
// system can reclaim the memory of mapped files at any time, so it is not counted.
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
