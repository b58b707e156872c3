package inspect

import (
	"hash/fnv"
	"io"
)

// maxSampledKeys is how many keys a hashSampledMap holds.
const maxSampledKeys = 100_000

// A hashSampledMap holds values by keys that are hashes. When it is full, it lets go of
// half of all keys, always the same: what is asked of the rest is answered as if
// there were no others.
type hashSampledMap[V any] struct {
	values map[uint64]V
	mask   uint64 // keys in the subset have none of its bits
}

func newHashSampledMap[V any]() *hashSampledMap[V] { return &hashSampledMap[V]{values: map[uint64]V{}} }

// accepts reports whether a key is not one of those that the subset lets go of.
func (s *hashSampledMap[V]) accepts(key uint64) bool { return key&s.mask == 0 }

func (s *hashSampledMap[V]) put(key uint64, v V) {
	if !s.accepts(key) {
		return
	}
	s.values[key] = v
	for len(s.values) > maxSampledKeys {
		s.mask = s.mask<<1 | 1
		for k := range s.values {
			if k&s.mask != 0 {
				delete(s.values, k)
			}
		}
	}
}

// keysPerSampledKey returns how many keys one in the subset stands for.
func (s *hashSampledMap[V]) keysPerSampledKey() int { return int(s.mask + 1) }

func hashForSample(s string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, s)
	x := h.Sum64() // whose low bits are too much alike to choose by
	x ^= x >> 32
	return x * 0x9e3779b97f4a7c15
}
