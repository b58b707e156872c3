package inspect

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Bounds of rosters: how old one may be when it is shown, and how long one is kept
// for who may ask again, of so many projects. One that takes long to make is shown
// for longer, so that who asks all the time costs the crawls a tenth of the
// machine at most.
const (
	minHostListTTL        = time.Second
	hostListTTLFactor     = 10
	hostListSweepInterval = 10 * time.Second
	maxCachedHostLists    = 4
)

// Rosters are those that somebody has just asked for. They are made one at a time.
type HostListCache struct {
	buildSlot chan struct{} // held by who makes one

	mu         sync.Mutex
	lists      map[string]*HostListSnapshot // by project
	sweepTimer *time.Timer
}

func NewHostListCache() *HostListCache {
	return &HostListCache{buildSlot: make(chan struct{}, 1), lists: map[string]*HostListSnapshot{}}
}

// GetOrBuild returns the roster of a project, which make makes if there is none that is
// fresh.
func (rs *HostListCache) GetOrBuild(ctx context.Context, project string, build func() (*HostListSnapshot, error)) (*HostListSnapshot, error) {
	if r := rs.unexpired(project); r != nil {
		return r, nil
	}
	select {
	case rs.buildSlot <- struct{}{}:
		defer func() { <-rs.buildSlot }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r := rs.unexpired(project); r != nil { // somebody else made it
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

func (rs *HostListCache) unexpired(project string) *HostListSnapshot {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.lists[project]; r != nil && time.Now().Before(r.expiresAt) {
		return r
	}
	return nil
}

// put keeps a roster, and drops those that nobody has asked for lately.
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

// sweep drops what is too old, until nothing is left.
func (rs *HostListCache) sweep() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(rs.lists, func(_ string, r *HostListSnapshot) bool { return now.After(r.expiresAt) })
	if rs.sweepTimer = nil; len(rs.lists) > 0 {
		rs.sweepTimer = time.AfterFunc(hostListSweepInterval, rs.sweep)
	}
}
