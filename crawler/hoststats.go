package crawler

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// A HostMemo is what a crawl remembers of a host beyond its clock, for reports
// and budgets: storage.Host.Memo, read. It covers all runs of the crawl, all
// origins of the host, and every request: robots.txt, sitemaps and retries too.
type HostMemo struct {
	Pages      int64         // visits to pages that were answered
	Begun      int64         // pages that were asked for at least once
	Requests   int64         // that left for the host, or broke on the way
	Failures   int64         // of Requests: no whole answer, 408, 425, 429 or 5xx
	Bytes      int64         // of bodies, as decoded
	Status     int           // of the last request; 0 if no answer came
	Last       time.Time     // end of the last request
	Addr       netip.Addr    // of the server, when it last answered; zero if it is not known
	Spent      time.Duration // in requests, added up
	Declared   time.Duration // the Crawl-delay that was in force last; 0: none
	Configured time.Duration // the crawl's own delay that was in force last
	Gaps       Gaps          // between requests
	Withheld   int64         // of Pages: their site asked not to use them for what the crawl is for
	Shortfall  time.Duration // the most by which a gap was shorter than the rest owed; must be 0
}

// memoVersion begins an encoded memo. Fields may be added at its end without
// another version: who does not know them leaves them.
const memoVersion = 1

// ReadHostMemo reads a storage.Host.Memo. One that is empty, damaged or of a
// later version says nothing: it is the zero memo.
func ReadHostMemo(b []byte) HostMemo {
	if len(b) == 0 || b[0] != memoVersion {
		return HostMemo{}
	}
	r := memoReader{b: b[1:]}
	m := HostMemo{Pages: r.count(), Begun: r.count(), Requests: r.count(), Failures: r.count(), Bytes: r.count(), Status: int(r.count())}
	if last := r.count(); last > 0 {
		m.Last = time.Unix(0, last).UTC()
	}
	m.Addr = r.addr()
	m.Spent, m.Declared, m.Configured = r.duration(), r.duration(), r.duration()
	m.Gaps.Min, m.Shortfall = r.duration(), r.duration()
	r.buckets(&m.Gaps)
	if len(r.b) > 0 { // it was not always kept
		m.Withheld = r.count()
	}
	if r.broken {
		return HostMemo{}
	}
	return m
}

// encode returns the memo as it is kept: about 60 bytes, and never 700.
func (m *HostMemo) encode() []byte {
	b := make([]byte, 1, 96)
	b[0] = memoVersion
	last := int64(0)
	if !m.Last.IsZero() {
		last = m.Last.UnixNano()
	}
	for _, n := range []int64{m.Pages, m.Begun, m.Requests, m.Failures, m.Bytes, int64(m.Status), last} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	addr := m.Addr.WithZone("").AsSlice()
	b = append(append(b, byte(len(addr))), addr...)
	for _, d := range []time.Duration{m.Spent, m.Declared, m.Configured, m.Gaps.Min, m.Shortfall} {
		b = binary.AppendUvarint(b, uint64(d))
	}
	return binary.AppendUvarint(m.Gaps.appendTo(b), uint64(m.Withheld))
}

// A memoReader takes a memo apart. After an error it returns zeros.
type memoReader struct {
	b      []byte
	broken bool
}

// count reads a number that fills no more than 63 bits.
func (r *memoReader) count() int64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || int64(n) < 0 {
		r.b, r.broken = nil, true
		return 0
	}
	r.b = r.b[size:]
	return int64(n)
}

func (r *memoReader) duration() time.Duration { return time.Duration(r.count()) }

func (r *memoReader) addr() netip.Addr {
	n := int(r.count())
	if n > len(r.b) {
		r.b, r.broken = nil, true
		return netip.Addr{}
	}
	addr, ok := netip.AddrFromSlice(r.b[:n])
	r.broken = r.broken || n > 0 && !ok
	r.b = r.b[n:]
	return addr
}

func (r *memoReader) buckets(g *Gaps) {
	first, n := r.count(), r.count()
	if first > gapBuckets || n > gapBuckets-first {
		r.broken = true
		return
	}
	for i := range n {
		g.counts[first+i] = uint32(min(r.count(), maxCount))
	}
}
