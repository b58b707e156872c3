package bodymem

import (
	"math/bits"
	"sync"
)

// minReusedBuffer and maxReusedBuffer are the capacities of the shortest and the longest buffers that
// visits use one after the other, in bytes. Of web pages, one in a thousand is longer.
const minReusedBuffer, maxReusedBuffer = 32 << 10, 4 << 20

// bufferPools are the buffers of visits that are over. Each pool has those of one capacity, a power of
// two, so that a few long pages do not make the buffers of all visits long.
type bufferPools [8]sync.Pool // of *[]byte; capacities from minReusedBuffer to maxReusedBuffer

// poolIndex returns the index of the pool whose buffers are the shortest of at least n bytes.
func poolIndex(n int64) int {
	return bits.Len64(uint64(max(n-1, minReusedBuffer-1)) / minReusedBuffer)
}

// take returns an empty buffer for at least n bytes.
func (p *bufferPools) take(n int64) []byte {
	if n > maxReusedBuffer {
		return make([]byte, 0, n)
	}
	i := poolIndex(n)
	if b, ok := p[i].Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 0, minReusedBuffer<<i)
}

// put gives b, which came from take, to another visit, unless it is very long.
func (p *bufferPools) put(b []byte) {
	if n := int64(cap(b)); minReusedBuffer <= n && n <= maxReusedBuffer {
		b = b[:0]
		p[poolIndex(n)].Put(&b)
	}
}
