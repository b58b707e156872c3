package inspect

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// minHostListTTL is how long a HostListCache returns the same list at least.
	minHostListTTL = time.Second
	// hostListTTLFactor times the time to build a list is its TTL, if that is longer, so that
	// constant queries for a list keep the machine busy with it for at most a tenth of the time.
	hostListTTLFactor = 10
	// hostListSweepInterval is how often expired lists are freed.
	hostListSweepInterval = 10 * time.Second
	// maxCachedHostLists is how many projects have a list in the cache.
	maxCachedHostLists = 4
)

// A HostListCache holds the latest list of hosts for each of a few projects. It builds one list at a
// time. Its methods are safe for concurrent use.
type HostListCache struct {
	buildSlot chan struct{} // holds a value while a caller builds a list

	mu         sync.Mutex                   // guards lists and sweepTimer
	lists      map[string]*HostListSnapshot // by project
	sweepTimer *time.Timer                  // calls sweep; nil while lists is empty
}

// NewHostListCache returns an empty HostListCache.
func NewHostListCache() *HostListCache {
	return &HostListCache{buildSlot: make(chan struct{}, 1), lists: map[string]*HostListSnapshot{}}
}

// GetOrBuild returns the list of a project's hosts. It calls build if the cache has no unexpired
// list. It waits while another list is built, at most until ctx is done. An error of build is not
// cached.
func (rs *HostListCache) GetOrBuild(ctx context.Context, project string,
	build func() (*HostListSnapshot, error)) (*HostListSnapshot, error) {
	if r := rs.unexpired(project); r != nil {
		return r, nil
	}
	select {
	case rs.buildSlot <- struct{}{}:
		defer func() { <-rs.buildSlot }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r := rs.unexpired(project); r != nil { // another caller built it while this one waited
		return r, nil
	}
	start := time.Now()
	r, err := build()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	r.expiresAt = now.Add(max(minHostListTTL, hostListTTLFactor*now.Sub(start)))
	rs.put(project, r)
	return r, nil
}

// unexpired returns the list of a project, or nil if the cache has none or it has expired.
func (rs *HostListCache) unexpired(project string) *HostListSnapshot {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.lists[project]; r != nil && time.Now().Before(r.expiresAt) {
		return r
	}
	return nil
}

// put stores the list of a project. A full cache drops the oldest list.
func (rs *HostListCache) put(project string, r *HostListSnapshot) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for len(rs.lists) >= maxCachedHostLists && rs.lists[project] == nil {
		delete(rs.lists, slices.MinFunc(slices.Collect(maps.Keys(rs.lists)), func(a, b string) int {
			return rs.lists[a].CreatedAt.Compare(rs.lists[b].CreatedAt)
		}))
	}
	rs.lists[project] = r
	if rs.sweepTimer == nil {
		rs.sweepTimer = time.AfterFunc(hostListSweepInterval, rs.sweep)
	}
}

// sweep drops expired lists, and starts the timer again while lists remain.
func (rs *HostListCache) sweep() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(rs.lists, func(_ string, r *HostListSnapshot) bool { return now.After(r.expiresAt) })
	if rs.sweepTimer = nil; len(rs.lists) > 0 {
		rs.sweepTimer = time.AfterFunc(hostListSweepInterval, rs.sweep)
	}
}
