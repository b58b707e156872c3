package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// The size of a plot's drawing, in SVG units. The style sheet sets its size on the page.
const (
	plotWidth  = 600
	plotHeight = 100
)

// A plot is the view of one metric over time.
type plot struct {
	Name                 string
	CurrentText, MaxText string // the last and the largest value, formatted
	Span                 string // the time that the plot covers, formatted
	LinePath             string // SVG path data, within plotWidth by plotHeight
	AreaPath             string // LinePath closed at the bottom, to be filled
	IsEmpty              bool   // there are no samples
}

// A plotMetric is a metric of a sample that a plot can show.
type plotMetric struct {
	name        string
	value       func(api.ThroughputSample) float64
	formatValue func(float64) string
}

var (
	pagesMetric = plotMetric{"Pages a second", func(s api.ThroughputSample) float64 {
		return s.PagesPerSecond
	}, formatRate}
	errorsMetric = plotMetric{"Errors a second", func(s api.ThroughputSample) float64 {
		return s.ErrorsPerSecond
	}, formatRate}
	bytesMetric = plotMetric{"Bytes a second", func(s api.ThroughputSample) float64 {
		return s.BytesPerSecond
	}, formatBytes}
	queuedMetric = plotMetric{"URLs queued", func(s api.ThroughputSample) float64 {
		return float64(s.QueuedURLs)
	}, func(n float64) string { return formatCount(int64(n)) }}
)

// newPlot returns the plot of the samples from until-span to until, with a point for each of steps
// equal parts of the span.
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
	// Draw the line from the left, scaled so that the largest value touches the top.
	top := math.Max(maxValue, math.SmallestNonzeroFloat32)
	var line strings.Builder
	for i, v := range values {
		fmt.Fprintf(&line, "L%.1f %.1f", float64(i)*plotWidth/float64(steps-1), plotHeight*(1-v/top))
	}
	p.LinePath = "M" + line.String()[1:]
	p.AreaPath = fmt.Sprintf("M0 %d%sL%d %dZ", plotHeight, line.String(), plotWidth, plotHeight)
	return p
}

// stepMeans returns the mean of the samples in each step of the span. A step without samples repeats
// the value of the step before it if there are samples after it; otherwise it is 0.
func (s plotMetric) stepMeans(samples []api.ThroughputSample, from time.Time, span time.Duration, steps int) []float64 {
	sums, counts := make([]float64, steps), make([]int, steps)
	last := -1
	for _, sample := range samples {
		i := int(float64(steps) * float64(sample.At.Sub(from)) / float64(span))
		if i == steps { // the sample is at the very end of the span
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
