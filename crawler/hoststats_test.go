package crawler

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
)

func TestHostStats(t *testing.T) {
	full := HostStats{
		HostTraffic: HostTraffic{Requests: math.MaxInt64, Bytes: math.MaxInt64},
		Pages:       math.MaxInt64, FailedRequests: math.MaxInt64, LastStatus: math.MaxInt32,
		LastEnd: time.Unix(0, math.MaxInt64).UTC(), Addr: netip.MustParseAddr("2001:db8::1"),
		TotalRequestTime: math.MaxInt64, CrawlDelay: math.MaxInt64, ConfiguredDelay: math.MaxInt64,
		LargestDelayShortfall: math.MaxInt64, PagesWithheld: math.MaxInt64, DuplicateLinks: math.MaxInt64,
	}
	for _, count := range full.laterTrafficCounts() {
		*count = math.MaxInt64
	}
	full.Gaps.Min = math.MaxInt64
	for i := range full.Gaps.counts {
		full.Gaps.counts[i] = math.MaxUint32
	}
	full.Health = politeness.HostHealth{FailuresByRow: math.MaxInt, PagesInRow: math.MaxInt,
		AnsweredPages: math.MaxInt, LastFailureStatus: 999,
		LearnedPace: politeness.LearnedPace{Delay: math.MaxInt64, AnswersAtDelay: math.MaxInt,
			WindowStart: time.Unix(0, math.MaxInt64).UTC(), LastAnswer: time.Unix(0, math.MaxInt64).UTC(),
			WindowAnswers: math.MaxInt, Throttled: true}}
	for i := range full.Health.FailedPages {
		full.Health.FailedPages[i] = politeness.FailedPage{
			URL: strings.Repeat("a", politeness.MaxFailedPageURL), Status: 999}
	}
	usual := HostStats{Pages: 1, HostTraffic: HostTraffic{Requests: 3, Connections: 1, NotModified: 2},
		LastEnd: time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC),
		Addr:    netip.MustParseAddr("192.0.2.1")}
	usual.Gaps.add(time.Second)
	usual.Health.FailedPages[0] = politeness.FailedPage{URL: "http://a.test/", Status: 500}
	for _, want := range []HostStats{{}, usual, full} {
		b := want.encode()
		if got := DecodeHostStats(b); got != want {
			t.Errorf("read %+v, want %+v", got, want)
		}
		if len(b) > storage.MaxStatsBytes {
			t.Errorf("%d bytes, at most %d are kept", len(b), storage.MaxStatsBytes)
		}
		if got := DecodeHostStats(append(b, "what a later program adds"...)); got != want {
			t.Errorf("with a field more, read %+v, want %+v", got, want)
		}
		// Records of earlier programs end before one of the counts of traffic, before Health, before
		// DuplicateLinks, or before PagesWithheld.
		earlier, whole := want, len(b)
		earlierLengths := map[int]bool{}
		checkCut := func(length int) {
			whole -= length
			earlierLengths[whole] = true
			if got := DecodeHostStats(b[:whole]); got != earlier {
				t.Errorf("of an earlier program, read %+v, want %+v", got, earlier)
			}
		}
		counts := earlier.laterTrafficCounts()
		for _, field := range slices.Backward(counts[:]) {
			length := len(binary.AppendUvarint(nil, uint64(*field)))
			*field = 0
			checkCut(length)
		}
		earlier.Health = politeness.HostHealth{}
		checkCut(len(appendHealth(nil, &want.Health)))
		for _, field := range []*int64{&earlier.DuplicateLinks, &earlier.PagesWithheld} {
			length := len(binary.AppendUvarint(nil, uint64(*field)))
			*field = 0
			checkCut(length)
		}
		for n := range b {
			if got := DecodeHostStats(b[:n]); !earlierLengths[n] && got != (HostStats{}) {
				t.Fatalf("cut after %d bytes, it reads as %+v", n, got)
			}
		}
		later := bytes.Clone(b)
		later[0]++
		if got := DecodeHostStats(later); got != (HostStats{}) {
			t.Errorf("a later version reads as %+v", got)
		}
	}
}

func FuzzHostStats(f *testing.F) {
	m := HostStats{Pages: 7, LastEnd: time.Unix(1, 2).UTC(), Addr: netip.MustParseAddr("::1")}
	m.Gaps.add(time.Second)
	f.Add(m.encode())
	m.Health.FailedPages[0] = politeness.FailedPage{URL: "http://a.test/", Status: 500}
	m.Health.LearnedPace = politeness.LearnedPace{Delay: time.Second, WindowStart: m.LastEnd, Throttled: true}
	f.Add(m.encode())
	f.Add([]byte{hostStatsVersion, 0, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := DecodeHostStats(b)
		if again := DecodeHostStats(m.encode()); again != m {
			t.Errorf("%x reads as %+v, which is kept as %+v", b, m, again)
		}
	})
}

// TestGapHistogram compares the median with that of a sorted list.
func TestGapHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, maxSeconds := range []float64{0.01, 1, 60, 7200} {
		var g GapHistogram
		var all []time.Duration
		for range 1001 {
			d := time.Duration((0.001 + r.Float64()*maxSeconds) * float64(time.Second))
			g.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		if got, want := g.Median(), all[500]; math.Abs(float64(got-want)) > 0.1*float64(want) {
			t.Errorf("median %v, want %v to within 10 %%", got, want)
		}
		if g.Min != all[0] || g.Count() != 1001 {
			t.Errorf("least %v of %d, want %v of 1001", g.Min, g.Count(), all[0])
		}
	}
	var g GapHistogram
	if g.Median() != 0 || g.Count() != 0 {
		t.Errorf("median %v of none", g.Median())
	}
	g.add(math.MaxInt64) // beyond all buckets
	g.add(-1)
	if g.Min != 0 || g.Count() != 2 {
		t.Errorf("least %v of %d, want 0 of 2", g.Min, g.Count())
	}
	g = GapHistogram{}
	g.add(time.Second)
	if got := g.Median(); got < time.Second {
		t.Errorf("median %v is shorter than the shortest", got)
	}
}
