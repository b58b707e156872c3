package page

import (
	"math"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

func TestWords(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for got, want := range map[string]string{
		count(0): "0", count(999): "999", count(1000): "1,000", count(-1234567): "-1,234,567", count(int64(math.MaxInt64)): "9,223,372,036,854,775,807",
		size(0): "0 B", size(1023): "1023 B", size(1536): "1.5 KiB", size(200 << 20): "200 MiB",
		rate(0): "0", rate(0.04): "0.0", rate(3.26): "3.3", rate(1234.5): "1,235",
		lapse(0): "0 ms", lapse(1): "1 ms", lapse(999 * time.Millisecond): "999 ms", lapse(999*time.Millisecond + 1): "1 s", lapse(2100 * time.Millisecond): "2.1 s",
		lapse(90 * time.Second): "90 s", lapse(5 * time.Minute): "5 min", lapse(3 * time.Hour): "3 h", lapse(72 * time.Hour): "3 d",
		gap(0): none, gap(api.Milliseconds(time.Microsecond)): "1 ms",
		tell(now, now.Add(3*time.Second)).Text: "in 3 s", tell(now, now.Add(-2*time.Minute)).Text: "2 min ago", tell(now, now).Text: "now", tell(now, time.Time{}).Text: "–",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPlot has a plot stay on its paper, whatever the samples.
func TestPlot(t *testing.T) {
	until := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	var samples []api.Sample
	for i := range 900 { // more than the span, and some of the future
		samples = append(samples, api.Sample{At: until.Add(time.Duration(i-800) * time.Second), Pages: float64(i % 60)})
	}
	for name, samples := range map[string][]api.Sample{"many": samples, "none": nil, "one": samples[700:701], "zero": {{At: until}}, "huge": {{At: until, Pages: math.MaxFloat64}}} {
		p := pagesSeries.draw(samples, until, lately, 100)
		numbers := regexp.MustCompile(`[A-Za-z ]+`).Split(p.Line, -1)[1:]
		if len(numbers) != 200 {
			t.Errorf("%s: %d numbers in %s", name, len(numbers), p.Line)
			continue
		}
		for i, text := range numbers {
			n, err := strconv.ParseFloat(text, 64)
			if most := []float64{plotWidth, plotHeight}[i%2]; err != nil || n < 0 || n > most {
				t.Errorf("%s: %q is off the paper", name, text)
			}
		}
	}
	if p := pagesSeries.draw(samples, until, lately, 100); p.Most != "59" || p.Now != "59" {
		t.Errorf("at most %s, now %s", p.Most, p.Now)
	}
}
