package crawler

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum/internal/binaryrecord"
	"github.com/decorum-crawler/decorum/politeness"
)

// HostStats is what a crawl remembers of a host besides its clock, for reports and budgets: the
// decoded storage.HostState.EncodedStats. It covers all runs of the crawl, all origins of the host,
// and every request, including robots.txt, sitemaps and retries.
type HostStats struct {
	HostTraffic
	Pages                 int64         // answers to page visits
	PagesRequested        int64         // pages requested at least once
	FailedRequests        int64         // of Requests: no whole answer, 408, 425, 429 or 5xx
	LastStatus            int           // of the last request; 0 if no answer came
	LastEnd               time.Time     // end of the last request
	Addr                  netip.Addr    // of the server at its last answer; zero if unknown
	TotalRequestTime      time.Duration // sum over all requests
	CrawlDelay            time.Duration // the delay that robots.txt required at the last visit; 0: none
	ConfiguredDelay       time.Duration // the delay that the crawl's policy required at the last visit
	Gaps                  GapHistogram  // times between requests
	PagesWithheld         int64         // of Pages: their site objects to a purpose of the crawl
	DuplicateLinks        int64         // URLs queued as links of pages with the body of another page of the host
	LargestDelayShortfall time.Duration // the most by which a gap fell short of the required rest; must be 0
	// Health is what the host's answers have shown. storage.HostState.ConsecutiveFailures holds its
	// ConsecutiveFailures, which are 0 here.
	Health politeness.HostHealth
}

// hostStatsVersion is the first byte of encoded statistics. New fields may be appended without a
// new version, because older readers ignore them.
const hostStatsVersion = 1

// DecodeHostStats decodes storage.HostState.EncodedStats. It returns the zero HostStats if b is
// empty, damaged or of a later version.
func DecodeHostStats(b []byte) HostStats {
	if len(b) == 0 || b[0] != hostStatsVersion {
		return HostStats{}
	}
	r := &binaryrecord.Reader{RemainingData: b[1:]}
	var m HostStats
	m.Pages, m.PagesRequested, m.Requests, m.FailedRequests = r.Int64(), r.Int64(), r.Int64(), r.Int64()
	m.Bytes, m.LastStatus = r.Int64(), int(r.Int64())
	m.LastEnd = readTime(r)
	m.Addr = readAddr(r)
	m.TotalRequestTime, m.CrawlDelay, m.ConfiguredDelay = readDuration(r), readDuration(r), readDuration(r)
	m.Gaps.Min, m.LargestDelayShortfall = readDuration(r), readDuration(r)
	readBuckets(r, &m.Gaps)
	// Older records lack the fields after this.
	for _, field := range []*int64{&m.PagesWithheld, &m.DuplicateLinks} {
		if len(r.RemainingData) > 0 {
			*field = r.Int64()
		}
	}
	if len(r.RemainingData) > 0 { // nor these
		readHealth(r, &m.Health)
	}
	for _, count := range m.laterTrafficCounts() {
		if len(r.RemainingData) > 0 {
			*count = r.Int64()
		}
	}
	if r.Err != nil {
		return HostStats{}
	}
	return m
}

// encode returns the encoded statistics: about 100 bytes, always less than storage.MaxStatsBytes.
func (m *HostStats) encode() []byte {
	b := make([]byte, 1, 160)
	b[0] = hostStatsVersion
	for _, n := range []int64{m.Pages, m.PagesRequested, m.Requests, m.FailedRequests, m.Bytes,
		int64(m.LastStatus), unixNano(m.LastEnd)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	addr := m.Addr.WithZone("").AsSlice()
	b = append(append(b, byte(len(addr))), addr...)
	for _, d := range []time.Duration{m.TotalRequestTime, m.CrawlDelay, m.ConfiguredDelay,
		m.Gaps.Min, m.LargestDelayShortfall} {
		b = binary.AppendUvarint(b, uint64(d))
	}
	b = binary.AppendUvarint(m.Gaps.appendEncoded(b), uint64(m.PagesWithheld))
	b = binary.AppendUvarint(b, uint64(m.DuplicateLinks))
	b = appendHealth(b, &m.Health)
	for _, count := range m.laterTrafficCounts() {
		b = binary.AppendUvarint(b, uint64(*count))
	}
	return b
}

// laterTrafficCounts returns the counts of t at the end of a record, in their order. Older records lack
// some or all of them; a new one is appended.
func (t *HostTraffic) laterTrafficCounts() [8]*int64 {
	return [...]*int64{&t.WireBytesSent, &t.WireBytesReceived, &t.Connections, &t.FullHandshakes,
		&t.ResumedHandshakes, &t.NotModified, &t.SavedByCompression, &t.SavedByRevalidation}
}

// appendHealth appends h, without ConsecutiveFailures.
func appendHealth(b []byte, h *politeness.HostHealth) []byte {
	p := &h.LearnedPace
	throttled := int64(0)
	if p.Throttled {
		throttled = 1
	}
	for _, n := range []int64{int64(h.FailuresByRow), int64(h.PagesInRow), int64(h.AnsweredPages),
		int64(h.LastFailureStatus),
		int64(p.Delay), int64(p.AnswersAtDelay), unixNano(p.WindowStart), unixNano(p.LastAnswer),
		int64(p.WindowAnswers), throttled} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	pages := h.FailedPages[:]
	if unused := slices.Index(pages, politeness.FailedPage{}); unused >= 0 {
		pages = pages[:unused]
	}
	b = binary.AppendUvarint(b, uint64(len(pages)))
	for _, page := range pages {
		b = binary.AppendUvarint(binaryrecord.AppendString(b, page.URL), uint64(page.Status))
	}
	return b
}

// readHealth reads what appendHealth wrote.
func readHealth(r *binaryrecord.Reader, h *politeness.HostHealth) {
	h.FailuresByRow, h.PagesInRow, h.AnsweredPages = int(r.Int64()), int(r.Int64()), int(r.Int64())
	h.LastFailureStatus = int(r.Int64())
	p := &h.LearnedPace
	p.Delay, p.AnswersAtDelay = readDuration(r), int(r.Int64())
	p.WindowStart, p.LastAnswer, p.WindowAnswers, p.Throttled = readTime(r), readTime(r), int(r.Int64()), r.Int64() > 0
	n := r.Int64()
	if n > politeness.MaxFailedPages {
		r.MarkDamaged()
		return
	}
	for i := range n {
		h.FailedPages[i] = politeness.FailedPage{URL: r.String(), Status: int(r.Int64())}
		if h.FailedPages[i] == (politeness.FailedPage{}) || len(h.FailedPages[i].URL) > politeness.MaxFailedPageURL {
			r.MarkDamaged()
			return
		}
	}
}

// unixNano returns a time in nanoseconds since 1970, or 0 for the zero time.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// readTime reads what unixNano returned.
func readTime(r *binaryrecord.Reader) time.Time {
	if n := r.Int64(); n > 0 {
		return time.Unix(0, n).UTC()
	}
	return time.Time{}
}

// readDuration reads a duration in nanoseconds.
func readDuration(r *binaryrecord.Reader) time.Duration { return time.Duration(r.Int64()) }

// readAddr reads an address; no bytes are the zero Addr.
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

// A GapHistogram counts the rests that a host got, from the end of one response to the start of the
// next request, in buckets a quarter of an octave wide: a million visits take no more space than
// ten.
type GapHistogram struct {
	Min    time.Duration // the shortest gap; 0 if there was none
	counts [gapBuckets]uint32
}

// The first bucket holds gaps up to about a millisecond, the last those beyond two hours.
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

// Count returns the number of gaps.
func (g *GapHistogram) Count() (n int64) {
	for _, c := range g.counts {
		n += int64(c)
	}
	return n
}

// Median returns the gap that half of all gaps do not exceed, 0 without gaps. It is accurate to
// within 10 % from a millisecond to two hours.
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
