package httpfetch

import (
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/internal/connlimit"
	"github.com/decorum-crawler/decorum/internal/memlimit"
)

// IdleConns are the connections that the Fetchers of a process keep open for later visits. If there
// are too many, it closes those of the host whose next visit is farthest away. Its methods are safe for
// concurrent use.
type IdleConns struct {
	limit int

	// mu guards byNextVisit and count. Comments in connKeeper, hostConns and keptConn name the other
	// fields under it. It is not held while a connection is closed or a host is looked up.
	mu          sync.Mutex
	byNextVisit hostsByNextVisit // hosts with connections, none of which is in use
	count       int              // connections of these hosts
}

// NewIdleConns returns an IdleConns that keeps at most limit connections. With a limit of 0 it keeps
// none.
func NewIdleConns(limit int) *IdleConns { return &IdleConns{limit: max(limit, 0)} }

// NewDefaultIdleConns returns an IdleConns with the limit DefaultIdleConnsLimit.
func NewDefaultIdleConns() *IdleConns { return NewIdleConns(DefaultIdleConnsLimit()) }

const (
	// idleConnBytes is about what an idle connection takes with TLS: 15 KiB of this process, half of which are
	// buffers of crypto/tls and the server's certificate, and a socket of the kernel.
	// BenchmarkIdleConnections measures the former.
	idleConnBytes = 24 << 10
	// minDefaultIdleConns is the least limit that DefaultIdleConnsLimit returns.
	minDefaultIdleConns = 64
	// fallbackIdleConns is the limit where the limit of file descriptors is unknown.
	fallbackIdleConns = 4096
)

// DefaultIdleConnsLimit returns three eighths of the number of file descriptors that the process may open
// (RLIMIT_NOFILE), but at most as many connections as take an eighth of the memory that it may use.
// Clients of a daemon take up to half of the descriptors, visits and files the rest.
func DefaultIdleConnsLimit() int {
	limit := fallbackIdleConns
	if n := connlimit.MaxDescriptors(); n > 0 {
		limit = int(min(n/8*3, 1<<20))
	}
	if memory := memlimit.Get().Bytes; memory > 0 {
		limit = min(limit, int(min(memory/8/idleConnBytes, 1<<20)))
	}
	return max(limit, minDefaultIdleConns)
}

// Limit returns how many idle connections are kept at most.
func (i *IdleConns) Limit() int { return i.limit }

// Len returns the number of idle connections.
func (i *IdleConns) Len() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.count
}

// takeExcessLocked removes the connections beyond the limit, which the caller must close without
// i.mu. The caller holds i.mu.
func (i *IdleConns) takeExcessLocked(now time.Time) (excess []*keptConn) {
	for i.count > i.limit {
		excess = append(excess, i.byNextVisit[0].takeAllLocked(now)...)
	}
	return excess
}

// hostsByNextVisit is a heap.Interface: the host with the latest next visit is the first.
type hostsByNextVisit []*hostConns

func (h hostsByNextVisit) Len() int           { return len(h) }
func (h hostsByNextVisit) Less(i, j int) bool { return h[i].nextVisit.After(h[j].nextVisit) }
func (h hostsByNextVisit) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push is part of heap.Interface.
func (h *hostsByNextVisit) Push(x any) {
	c := x.(*hostConns)
	c.heapIndex = len(*h)
	*h = append(*h, c)
}

// Pop is part of heap.Interface.
func (h *hostsByNextVisit) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last], *h, c.heapIndex = nil, (*h)[:last], notInHeap
	return c
}

// notInHeap is the heapIndex of a host that is not in IdleConns.byNextVisit.
const notInHeap = -1
