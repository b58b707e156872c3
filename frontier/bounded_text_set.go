package frontier

import (
	"hash/maphash"
	"sync/atomic"
)

// A boundedTextSet remembers texts by their hashes until newer ones replace them. It has no lock;
// its methods may be called concurrently.
type boundedTextSet struct {
	seed     maphash.Seed
	capacity int                             // number of texts it can hold, in 8 bytes each
	buckets  atomic.Pointer[[]textSetBucket] // nil: the set is empty
}

// newBoundedTextSet returns a set that can hold capacity texts. The first add allocates the memory:
// a program that only inspects a crawl has a Frontier too.
func newBoundedTextSet(capacity int) boundedTextSet {
	return boundedTextSet{seed: maphash.MakeSeed(), capacity: capacity}
}

// A textSetBucket holds some of the hashes in any of its places; 0 is a free place. It fills one
// cache line of the processor.
type textSetBucket [8]atomic.Uint64

// contains reports whether the set remembers text.
func (c *boundedTextSet) contains(text string) bool {
	buckets := c.buckets.Load()
	if buckets == nil {
		return false
	}
	hash := maphash.String(c.seed, text)
	return hashBucketOf(*buckets, hash).contains(hash)
}

// add adds text to the set. If text's bucket is full, it replaces another text.
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

// reset empties the set.
func (c *boundedTextSet) reset() { c.buckets.Store(nil) }

// hashBucketOf returns the only bucket that may contain hash.
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

// insert stores hash in a free place, or replaces the hash at a place that depends on hash.
func (s *textSetBucket) insert(hash uint64) {
	for i := range s {
		if s[i].CompareAndSwap(0, hash) {
			return
		}
	}
	s[hash>>32%uint64(len(s))].Store(hash)
}
