package crawler

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"github.com/decorum-crawler/decorum/internal/recent"
)

// countDuplicateOrNonCanonical counts v if its page says that it stands for another, or has the
// body of one that was visited before. A page that was visited before itself is
// counted then, and one that is not to be used is not.
func (c *Crawler) countDuplicateOrNonCanonical(v *Visit) {
	if !v.OK() || v.IsRevisit() || v.Lease.Request != nil || v.contentWithheld {
		return
	}
	if to := v.CanonicalURL(); !to.IsZero() && to != v.URL() && c.cleanURL(to) != v.Lease.URL {
		c.counters.count(func(s *Stats) { s.NonCanonical++ })
	}
	if len(v.Response.Body) > 0 && !v.Response.BodyLimitExceeded && c.contentSeen.addAndReportDuplicate(c.bodyHash(v), v.URL().String()) {
		c.counters.count(func(s *Stats) { s.DuplicateBodies++ })
	}
}

// bodyHash returns what the body of v is known by. Where visits are written down, that
// is what is written.
func (c *Crawler) bodyHash(v *Visit) uint64 {
	if c.PageRecorder == nil {
		return c.contentSeen.hash(v.Response.Body)
	}
	sum := v.BodySHA256()
	return binary.LittleEndian.Uint64(sum[:])
}

// contentSeenSize is how many bodies are remembered at least; twice as many at most, in
// about 4 MB.
const contentSeenSize = 50_000

// contentSeen remembers which pages had which bodies lately.
type contentSeen struct {
	hashSeedOnce sync.Once
	hashSeed     maphash.Seed

	mu             sync.Mutex                 // guards firstURLHashes
	firstURLHashes recent.Map[uint64, uint64] // of the first URL that had a body, by the hash of the body
}

// hash returns a quick hash.
func (b *contentSeen) hash(text []byte) uint64 {
	b.hashSeedOnce.Do(func() { b.hashSeed = maphash.MakeSeed() })
	return maphash.Bytes(b.hashSeed, text)
}

// addAndReportDuplicate reports whether the body with that hash was another URL's before, and
// remembers it.
func (b *contentSeen) addAndReportDuplicate(key uint64, url string) bool {
	urlHash := b.hash([]byte(url))
	b.mu.Lock()
	defer b.mu.Unlock()
	firstURLHash, known := b.firstURLHashes.Peek(key)
	if !known {
		firstURLHash = urlHash
	}
	b.firstURLHashes.Put(key, firstURLHash, contentSeenSize)
	return firstURLHash != urlHash
}
