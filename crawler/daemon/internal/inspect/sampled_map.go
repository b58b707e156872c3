package inspect

import (
	"hash/fnv"
	"io"
)

// maxSampledKeys is how many keys a hashSampledMap holds.
const maxSampledKeys = 100_000

// A hashSampledMap maps hashes to values, for a sample of all hashes. Whenever it is full, it
// halves the sample: it drops half of the hashes and accepts these no more. For the hashes in the
// sample, its answers are exact.
type hashSampledMap[V any] struct {
	values map[uint64]V
	mask   uint64 // the sample is the hashes without any of these bits
}

// newHashSampledMap returns an empty map that samples all hashes.
func newHashSampledMap[V any]() *hashSampledMap[V] { return &hashSampledMap[V]{values: map[uint64]V{}} }

// accepts reports whether key is in the sample.
func (s *hashSampledMap[V]) accepts(key uint64) bool { return key&s.mask == 0 }

// put sets the value of key, if key is in the sample, and halves the sample if the map is full.
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

// keysPerSampledKey returns how many keys each key in the sample represents.
func (s *hashSampledMap[V]) keysPerSampledKey() int { return int(s.mask + 1) }

// hashForSample returns a hash of s for a hashSampledMap.
func hashForSample(s string) uint64 {
	h := fnv.New64a()
	io.WriteString(h, s)
	x := h.Sum64() // its low bits, which select the sample, are too similar: mix them
	x ^= x >> 32
	return x * 0x9e3779b97f4a7c15
}
