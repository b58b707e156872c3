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
	windows      = 30               // into which a run is cut; of each the median counts
	maxFlatSlope = 0.02             // of the mean in slopeOver: what grows by less is flat
	slopeOver    = 10 * time.Minute // also the least time of a run that is judged
)

// A trend says whether a figure grows, once it has settled: in the last two thirds
// of a run.
type trend struct {
	First, Last float64 // means of the first and of the last third
	Slope       float64 // of the last two thirds: growth in slopeOver, as part of their mean
}

func (t trend) flat() bool { return t.Slope < maxFlatSlope }

// trendOf works out the trend of a figure that was taken at even intervals over a
// run. The medians of windows are what is fitted: a pause for a moment, or the heap
// between two collections, is no trend.
func trendOf(values []float64, run time.Duration) trend {
	points := medians(values, windows)
	third := len(points) / 3
	settled := points[third:]
	slope, level := fit(settled)
	growth := slope * float64(len(points)) * slopeOver.Seconds() / run.Seconds()
	if level != 0 {
		growth /= level
	}
	return trend{First: mean(points[:third]), Last: mean(points[len(points)-third:]), Slope: growth}
}

// medians cuts values into at most n parts, and returns the median of each.
func medians(values []float64, n int) []float64 {
	n = min(n, len(values))
	out := make([]float64, n)
	for i := range out {
		part := slices.Sorted(slices.Values(values[len(values)*i/n : len(values)*(i+1)/n]))
		out[i] = (part[(len(part)-1)/2] + part[len(part)/2]) / 2
	}
	return out
}

// fit returns the slope, for one value to the next, and the mean of the line that
// fits best by least squares.
func fit(values []float64) (slope, level float64) {
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

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// sparkline plots values, from zero up, in so many characters at most.
func sparkline(values []float64, wide int) string {
	points := medians(values, wide)
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
