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
	Name      string
	Now, Most string // as people say them
	Span      string // of time
	Line      string // path data of an SVG of plotWidth by plotHeight
	Area      string // likewise, closed at the bottom
	Empty     bool   // there are no samples
}

// A series is what a plot takes from a sample.
type series struct {
	name  string
	value func(api.Sample) float64
	say   func(float64) string
}

var (
	pagesSeries  = series{"Pages a second", func(s api.Sample) float64 { return s.Pages }, rate}
	errorsSeries = series{"Errors a second", func(s api.Sample) float64 { return s.Errors }, rate}
	bytesSeries  = series{"Bytes a second", func(s api.Sample) float64 { return s.Bytes }, size}
	queuedSeries = series{"URLs queued", func(s api.Sample) float64 { return float64(s.Queued) }, func(n float64) string { return count(int64(n)) }}
)

// draw makes the plot of samples from until-span to until, in as many steps.
func (s series) draw(samples []api.Sample, until time.Time, span time.Duration, steps int) plot {
	p := plot{Name: s.name, Span: lapse(span), Empty: len(samples) == 0}
	values := s.steps(samples, until.Add(-span), span, steps)
	now, most := 0.0, 0.0
	for _, sample := range samples {
		most = max(most, s.value(sample))
	}
	if !p.Empty {
		now = s.value(samples[len(samples)-1])
	}
	p.Now, p.Most = s.say(now), s.say(most)
	top := math.Max(most, math.SmallestNonzeroFloat32)
	var line strings.Builder
	for i, v := range values {
		fmt.Fprintf(&line, "L%.1f %.1f", float64(i)*plotWidth/float64(steps-1), plotHeight*(1-v/top))
	}
	p.Line = "M" + line.String()[1:]
	p.Area = fmt.Sprintf("M0 %d%sL%d %dZ", plotHeight, line.String(), plotWidth, plotHeight)
	return p
}

// steps returns the mean of each step of the span; one without samples has the
// value before it as long as there are samples after it.
func (s series) steps(samples []api.Sample, from time.Time, span time.Duration, steps int) []float64 {
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
