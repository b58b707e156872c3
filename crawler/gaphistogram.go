package crawler

import (
	"encoding/binary"
	"math"
	"time"
)

// GapHistogram counts the rests that a host had, from the end of one response to the
// start of the next request, in buckets a quarter of an octave wide: a host of
// a million visits takes no more room than one of ten.
type GapHistogram struct {
	Min    time.Duration // the shortest; 0 if there was none
	counts [gapBuckets]uint32
}

// The buckets: the first is for all up to a millisecond, about, the last for all
// beyond two hours.
const (
	gapBuckets       = 92
	gapUnit          = time.Second / 1024
	bucketsPerOctave = 4 // buckets in which a gap doubles
	maxBucketCount   = math.MaxUint32
)

// add counts a gap.
func (g *GapHistogram) add(d time.Duration) {
	d = max(d, 0)
	if g.Count() == 0 || d < g.Min {
		g.Min = d
	}
	i := 0
	if d > gapUnit {
		i = min(int(bucketsPerOctave*math.Log2(float64(d)/float64(gapUnit))), gapBuckets-1)
	}
	if g.counts[i] < maxBucketCount {
		g.counts[i]++
	}
}

// Count returns how many gaps there were.
func (g *GapHistogram) Count() (n int64) {
	for _, c := range g.counts {
		n += int64(c)
	}
	return n
}

// Median returns the gap that half of all do not exceed, 0 if there was none.
// It is right to within 10 %, from a millisecond up to two hours.
func (g *GapHistogram) Median() time.Duration {
	n := g.Count()
	if n == 0 {
		return 0
	}
	left := (n + 1) / 2
	for i, c := range g.counts {
		if left -= int64(c); left <= 0 {
			middle := float64(gapUnit) * math.Exp2((float64(i)+0.5)/bucketsPerOctave)
			return max(g.Min, time.Duration(middle))
		}
	}
	return g.Min
}

// appendEncoded appends the buckets from the first to the last that is not empty.
func (g *GapHistogram) appendEncoded(b []byte) []byte {
	first, end := 0, gapBuckets
	for end > 0 && g.counts[end-1] == 0 {
		end--
	}
	for first < end && g.counts[first] == 0 {
		first++
	}
	b = binary.AppendUvarint(b, uint64(first))
	b = binary.AppendUvarint(b, uint64(end-first))
	for _, c := range g.counts[first:end] {
		b = binary.AppendUvarint(b, uint64(c))
	}
	return b
}
