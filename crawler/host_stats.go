package crawler

import (
	"encoding/binary"
	"math"
	"net/netip"
	"time"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
)

// A HostStats is what a crawl remembers of a host beyond its clock, for reports
// and budgets: storage.HostState.EncodedStats, read. It covers all runs of the crawl, all
// origins of the host, and every request: robots.txt, sitemaps and retries too.
type HostStats struct {
	Pages                 int64         // visits to pages that were answered
	PagesRequested        int64         // pages that were asked for at least once
	Requests              int64         // that left for the host, or broke on the way
	FailedRequests        int64         // of Requests: no whole answer, 408, 425, 429 or 5xx
	Bytes                 int64         // of bodies, as decoded
	LastStatus            int           // of the last request; 0 if no answer came
	LastEnd               time.Time     // end of the last request
	Addr                  netip.Addr    // of the server, when it last answered; zero if it is not known
	TotalRequestTime      time.Duration // in requests, added up
	CrawlDelay            time.Duration // the Crawl-delay that was in force last; 0: none
	ConfiguredDelay       time.Duration // the crawl's own delay that was in force last
	Gaps                  GapHistogram  // between requests
	PagesWithheld         int64         // of Pages: their site asked not to use them for what the crawl is for
	LargestDelayShortfall time.Duration // the most by which a gap was shorter than the rest owed; must be 0
}

// hostStatsVersion begins encoded statistics. Fields may be added at its end without
// another version: who does not know them leaves them.
const hostStatsVersion = 1

// DecodeHostStats reads a storage.HostState.EncodedStats. One that is empty, damaged or of a
// later version says nothing: it is the zero HostStats.
func DecodeHostStats(b []byte) HostStats {
	if len(b) == 0 || b[0] != hostStatsVersion {
		return HostStats{}
	}
	r := &binaryrecord.Reader{RemainingData: b[1:]}
	m := HostStats{
		Pages: r.Int64(), PagesRequested: r.Int64(), Requests: r.Int64(), FailedRequests: r.Int64(), Bytes: r.Int64(), LastStatus: int(r.Int64()),
	}
	if last := r.Int64(); last > 0 {
		m.LastEnd = time.Unix(0, last).UTC()
	}
	m.Addr = readAddr(r)
	m.TotalRequestTime, m.CrawlDelay, m.ConfiguredDelay = readDuration(r), readDuration(r), readDuration(r)
	m.Gaps.Min, m.LargestDelayShortfall = readDuration(r), readDuration(r)
	readBuckets(r, &m.Gaps)
	if len(r.RemainingData) > 0 { // it was not always kept
		m.PagesWithheld = r.Int64()
	}
	if r.Err != nil {
		return HostStats{}
	}
	return m
}

// encode returns the statistics as they are kept: about 60 bytes, and never 700.
func (m *HostStats) encode() []byte {
	b := make([]byte, 1, 96)
	b[0] = hostStatsVersion
	last := int64(0)
	if !m.LastEnd.IsZero() {
		last = m.LastEnd.UnixNano()
	}
	for _, n := range []int64{m.Pages, m.PagesRequested, m.Requests, m.FailedRequests, m.Bytes, int64(m.LastStatus), last} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	addr := m.Addr.WithZone("").AsSlice()
	b = append(append(b, byte(len(addr))), addr...)
	for _, d := range []time.Duration{m.TotalRequestTime, m.CrawlDelay, m.ConfiguredDelay, m.Gaps.Min, m.LargestDelayShortfall} {
		b = binary.AppendUvarint(b, uint64(d))
	}
	return binary.AppendUvarint(m.Gaps.appendEncoded(b), uint64(m.PagesWithheld))
}

// readDuration reads a duration from 0.
func readDuration(r *binaryrecord.Reader) time.Duration { return time.Duration(r.Int64()) }

// readAddr reads an address, and the zero address from no bytes.
func readAddr(r *binaryrecord.Reader) netip.Addr {
	b := r.Bytes()
	addr, ok := netip.AddrFromSlice(b)
	if len(b) > 0 && !ok {
		r.MarkDamaged()
	}
	return addr
}

// readBuckets reads what GapHistogram.appendEncoded wrote.
func readBuckets(r *binaryrecord.Reader, g *GapHistogram) {
	first, n := r.Int64(), r.Int64()
	if first > gapBuckets || n > gapBuckets-first {
		r.MarkDamaged()
		return
	}
	for i := range n {
		g.counts[first+i] = uint32(min(r.Int64(), maxBucketCount))
	}
}

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
