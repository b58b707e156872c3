package bodymem

import (
	"math/bits"
	"sync"
)

// minReusedBuffer and maxReusedBuffer are the capacities of the shortest and the longest buffers that
// visits use one after the other, in bytes. Of web pages, one in a thousand is longer.
const minReusedBuffer, maxReusedBuffer = 32 << 10, 4 << 20

// bufferPools are the buffers of visits that are over. Each pool has those of one capacity, a power of
// two, so that a few long pages do not make the buffers of all visits long. A nil *bufferPools has no
// pools: its buffers are new, and serve one visit.
type bufferPools [8]sync.Pool // of *[]byte; capacities from minReusedBuffer to maxReusedBuffer

// roundUp returns the smallest capacity of a pool that holds n bytes, or n if no pool has so long buffers.
func (p *bufferPools) roundUp(n int64) int64 {
	if p == nil || n > maxReusedBuffer {
		return n
	}
	return 1 << bits.Len64(uint64(max(n, minReusedBuffer)-1))
}

// pool returns the pool for buffers with a capacity of n bytes, or nil if no pool has such buffers.
func (p *bufferPools) pool(n int64) *sync.Pool {
	if p == nil || n < minReusedBuffer || n > maxReusedBuffer || n&(n-1) != 0 {
		return nil
	}
	return &p[bits.TrailingZeros64(uint64(n/minReusedBuffer))]
}

// take returns an empty buffer with a capacity of n bytes.
func (p *bufferPools) take(n int64) []byte {
	if pool := p.pool(n); pool != nil {
		if b, ok := pool.Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, 0, n)
}

// put gives b to another visit, if a pool has buffers of its capacity.
func (p *bufferPools) put(b []byte) {
	if pool := p.pool(int64(cap(b))); pool != nil {
		b = b[:0]
		pool.Put(&b)
	}
}
