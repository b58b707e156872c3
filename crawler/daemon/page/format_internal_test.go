package page

import (
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

func TestFormat(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for got, want := range map[string]string{
		formatCount(0): "0", formatCount(999): "999", formatCount(1000): "1,000", formatCount(-1234567): "-1,234,567",
		formatCount(int64(math.MaxInt64)): "9,223,372,036,854,775,807",
		formatBytes(0):                    "0 B", formatBytes(1023): "1023 B", formatBytes(1536): "1.5 KiB",
		formatBytes(200 << 20): "200 MiB",
		formatRate(0):          "0", formatRate(0.04): "0.0", formatRate(3.26): "3.3", formatRate(1234.5): "1,235",
		formatDuration(0): "0 ms", formatDuration(1): "1 ms", formatDuration(999 * time.Millisecond): "999 ms",
		formatDuration(999*time.Millisecond + 1): "1 s", formatDuration(2100 * time.Millisecond): "2.1 s",
		formatDuration(90 * time.Second): "90 s", formatDuration(5 * time.Minute): "5 min",
		formatDuration(3 * time.Hour): "3 h", formatDuration(72 * time.Hour): "3 d",
		formatDelay(0): emptyValue, formatDelay(api.Milliseconds(time.Microsecond)): "1 ms",
		formatRelativeTime(now, now.Add(3*time.Second)).Text:  "in 3 s",
		formatRelativeTime(now, now.Add(-2*time.Minute)).Text: "2 min ago", formatRelativeTime(now, now).Text: "now",
		formatRelativeTime(now, time.Time{}).Text: "–",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Every point of a plot is within the drawing, whatever the samples.
func TestPlot(t *testing.T) {
	until := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	var samples []api.ThroughputSample
	for i := range 900 { // more than the span covers, some after its end
		samples = append(samples, api.ThroughputSample{At: until.Add(time.Duration(i-800) * time.Second),
			PagesPerSecond: float64(i % 60)})
	}
	for name, samples := range map[string][]api.ThroughputSample{"many": samples, "none": nil, "one": samples[700:701],
		"zero": {{At: until}}, "huge": {{At: until, PagesPerSecond: math.MaxFloat64}}} {
		p := pagesMetric.newPlot(samples, until, recentPlotSpan, 100)
		numbers := regexp.MustCompile(`[A-Za-z ]+`).Split(p.LinePath, -1)[1:]
		if len(numbers) != 200 {
			t.Errorf("%s: %d numbers in %s", name, len(numbers), p.LinePath)
			continue
		}
		for i, text := range numbers {
			n, err := strconv.ParseFloat(text, 64)
			if limit := []float64{plotWidth, plotHeight}[i%2]; err != nil || n < 0 || n > limit {
				t.Errorf("%s: %q is outside the drawing", name, text)
			}
		}
	}
	if p := pagesMetric.newPlot(samples, until, recentPlotSpan, 100); p.MaxText != "59" || p.CurrentText != "59" {
		t.Errorf("at most %s, now %s", p.MaxText, p.CurrentText)
	}
}
