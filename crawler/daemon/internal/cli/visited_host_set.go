package cli

import (
	"sync"

	"github.com/decorum-crawler/decorum/crawler"
)

// A visitedHostSet holds the hosts that a run has visited. It is safe for concurrent use.
type visitedHostSet struct {
	mu    sync.Mutex // guards names
	names map[string]bool
}

func (h *visitedHostSet) addVisitedHost(v *crawler.Visit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names[v.URL().Origin().Host()] = true
}

func (h *visitedHostSet) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.names)
}
