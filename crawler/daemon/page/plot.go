package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// Size of a plot's drawing. Its shape on the page is up to the style sheet.
const (
	plotWidth  = 600
	plotHeight = 100
)

// A plot is one value over time.
type plot struct {
	Name                 string
	CurrentText, MaxText string // as people say them
	Span                 string // of time
	LinePath             string // path data of an SVG of plotWidth by plotHeight
	AreaPath             string // likewise, closed at the bottom
	IsEmpty              bool   // there are no samples
}

// A plotMetric is what a plot takes from a sample.
type plotMetric struct {
	name        string
	value       func(api.ThroughputSample) float64
	formatValue func(float64) string
}

var (
	pagesMetric  = plotMetric{"Pages a second", func(s api.ThroughputSample) float64 { return s.PagesPerSecond }, formatRate}
	errorsMetric = plotMetric{"Errors a second", func(s api.ThroughputSample) float64 { return s.ErrorsPerSecond }, formatRate}
	bytesMetric  = plotMetric{"Bytes a second", func(s api.ThroughputSample) float64 { return s.BytesPerSecond }, formatBytes}
	queuedMetric = plotMetric{"URLs queued", func(s api.ThroughputSample) float64 { return float64(s.QueuedURLs) }, func(n float64) string { return formatCount(int64(n)) }}
)

// newPlot makes the plot of samples from until-span to until, in as many steps.
func (s plotMetric) newPlot(samples []api.ThroughputSample, until time.Time, span time.Duration, steps int) plot {
	p := plot{Name: s.name, Span: formatDuration(span), IsEmpty: len(samples) == 0}
	values := s.stepMeans(samples, until.Add(-span), span, steps)
	current, maxValue := 0.0, 0.0
	for _, sample := range samples {
		maxValue = max(maxValue, s.value(sample))
	}
	if !p.IsEmpty {
		current = s.value(samples[len(samples)-1])
	}
	p.CurrentText, p.MaxText = s.formatValue(current), s.formatValue(maxValue)
	top := math.Max(maxValue, math.SmallestNonzeroFloat32)
	var line strings.Builder
	for i, v := range values {
		fmt.Fprintf(&line, "L%.1f %.1f", float64(i)*plotWidth/float64(steps-1), plotHeight*(1-v/top))
	}
	p.LinePath = "M" + line.String()[1:]
	p.AreaPath = fmt.Sprintf("M0 %d%sL%d %dZ", plotHeight, line.String(), plotWidth, plotHeight)
	return p
}

// stepMeans returns the mean of each step of the span; one without samples has the
// value before it as long as there are samples after it.
func (s plotMetric) stepMeans(samples []api.ThroughputSample, from time.Time, span time.Duration, steps int) []float64 {
	sums, counts := make([]float64, steps), make([]int, steps)
	last := -1
	for _, sample := range samples {
		i := int(float64(steps) * float64(sample.At.Sub(from)) / float64(span))
		if i == steps {
			i--
		}
		if i < 0 || i > steps {
			continue
		}
		sums[i] += s.value(sample)
		counts[i]++
		last = max(last, i)
	}
	for i := range sums {
		switch {
		case counts[i] > 0:
			sums[i] /= float64(counts[i])
		case i > 0 && i < last:
			sums[i] = sums[i-1]
		}
	}
	return sums
}
