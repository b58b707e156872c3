package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	maxWindows   = 30               // number of windows of a run, whose medians are the points of a trend
	maxFlatSlope = 0.02             // a figure that grows by less of its mean in slopePeriod is flat
	slopePeriod  = 10 * time.Minute // also the shortest run whose trends are checked
)

// A trend says whether a figure grows once it has settled: in the last two thirds of a run.
type trend struct {
	FirstThirdMean, LastThirdMean float64
	RelativeSlope                 float64 // growth in slopePeriod during the last two thirds, relative to their mean
}

// isNotGrowing reports whether the figure is flat or falls.
func (t trend) isNotGrowing() bool { return t.RelativeSlope < maxFlatSlope }

// newTrend returns the trend of a figure that was sampled at equal intervals over a run. It fits a
// line to the medians of windows, so that a short pause, or the growth of the heap between two
// collections, does not count.
func newTrend(values []float64, run time.Duration) trend {
	points := windowMedians(values, maxWindows)
	third := len(points) / 3
	settled := points[third:]
	slope, level := fitLine(settled)
	growth := slope * float64(len(points)) * slopePeriod.Seconds() / run.Seconds()
	if level != 0 {
		growth /= level
	}
	return trend{FirstThirdMean: mean(points[:third]),
		LastThirdMean: mean(points[len(points)-third:]), RelativeSlope: growth}
}

// windowMedians divides values into at most n windows, and returns the median of each.
func windowMedians(values []float64, n int) []float64 {
	n = min(n, len(values))
	out := make([]float64, n)
	for i := range out {
		part := slices.Sorted(slices.Values(values[len(values)*i/n : len(values)*(i+1)/n]))
		out[i] = (part[(len(part)-1)/2] + part[len(part)/2]) / 2
	}
	return out
}

// fitLine returns the line that fits values best by least squares: its slope from one value to the
// next, and its mean.
func fitLine(values []float64) (slope, level float64) {
	level = mean(values)
	middle := float64(len(values)-1) / 2
	var above, below float64
	for i, v := range values {
		x := float64(i) - middle
		above += x * (v - level)
		below += x * x
	}
	if below == 0 {
		return 0, level
	}
	return above / below, level
}

// mean returns the mean of values, or 0 without values.
func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// sparkline plots values, from zero upwards, in at most maxWidth characters, followed by the scale.
func sparkline(values []float64, maxWidth int) string {
	points := windowMedians(values, maxWidth)
	if len(points) == 0 {
		return ""
	}
	top := cmp.Or(slices.Max(points), 1)
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, p := range points {
		b.WriteRune(bars[int(math.Round(max(0, p)/top*float64(len(bars)-1)))])
	}
	return fmt.Sprintf("%s 0..%.4g", b.String(), top)
}
