package frontier

import (
	"hash/maphash"
	"sync/atomic"
)

// A boundedTextSet remembers texts by their hashes, for as long as it has room. Its methods
// may be called at the same time.
type boundedTextSet struct {
	seed     maphash.Seed
	capacity int                             // texts that it has room for, in 8 bytes each
	buckets  atomic.Pointer[[]textSetBucket] // nil: it remembers nothing
}

// newBoundedTextSet returns a cache with room for size texts. It takes the room with the
// first text: a program that only inspects a crawl has a Frontier, too.
func newBoundedTextSet(capacity int) boundedTextSet {
	return boundedTextSet{seed: maphash.MakeSeed(), capacity: capacity}
}

// A textSetBucket is where some hashes may be, in any of its places: a line of a processor's
// cache. 0 is none.
type textSetBucket [8]atomic.Uint64

// contains reports whether the cache remembers text.
func (c *boundedTextSet) contains(text string) bool {
	buckets := c.buckets.Load()
	if buckets == nil {
		return false
	}
	hash := maphash.String(c.seed, text)
	return hashBucketOf(*buckets, hash).contains(hash)
}

// add adds text to the cache, and drops another if its shelf is full.
func (c *boundedTextSet) add(text string) {
	buckets := c.buckets.Load()
	for buckets == nil {
		empty := make([]textSetBucket, c.capacity/len(textSetBucket{}))
		c.buckets.CompareAndSwap(nil, &empty)
		buckets = c.buckets.Load()
	}
	hash := maphash.String(c.seed, text)
	if bucket := hashBucketOf(*buckets, hash); !bucket.contains(hash) {
		bucket.insert(hash)
	}
}

// reset clears the cache.
func (c *boundedTextSet) reset() { c.buckets.Store(nil) }

// hashBucketOf returns where a hash may be.
func hashBucketOf(buckets []textSetBucket, hash uint64) *textSetBucket {
	return &buckets[hash%uint64(len(buckets))]
}

func (s *textSetBucket) contains(hash uint64) bool {
	for i := range s {
		if s[i].Load() == hash {
			return true
		}
	}
	return false
}

// insert puts a hash into a place that is free, or else into one that it names itself.
func (s *textSetBucket) insert(hash uint64) {
	for i := range s {
		if s[i].CompareAndSwap(0, hash) {
			return
		}
	}
	s[hash>>32%uint64(len(s))].Store(hash)
}
