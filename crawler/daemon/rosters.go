package daemon

import (
	"context"
	"sync"
	"time"
)

// Bounds of rosters: how old one may be when it is shown, and how long one is kept
// for who may ask again, of so many projects. One that takes long to make is shown
// for longer, so that who asks all the time costs the crawls a tenth of the
// machine at most.
const (
	rosterAge          = time.Second
	rosterShare        = 10
	rosterLinger       = 10 * time.Second
	maxCachedHostLists = 4
)

// Rosters are those that somebody has just asked for. They are made one at a time.
type rosters struct {
	making chan struct{} // held by who makes one

	mu    sync.Mutex
	lists map[string]*roster // by project
	drop  *time.Timer
}

func newRosters() *rosters {
	return &rosters{making: make(chan struct{}, 1), lists: map[string]*roster{}}
}

// get returns the roster of a project, which make makes if there is none that is
// fresh.
func (rs *rosters) get(ctx context.Context, project string, make func() (*roster, error)) (*roster, error) {
	if r := rs.find(project); r != nil {
		return r, nil
	}
	select {
	case rs.making <- struct{}{}:
		defer func() { <-rs.making }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r := rs.find(project); r != nil { // somebody else made it
		return r, nil
	}
	begin := time.Now()
	r, err := make()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	r.fresh = now.Add(max(rosterAge, rosterShare*now.Sub(begin)))
	rs.keep(project, r)
	return r, nil
}

func (rs *rosters) find(project string) *roster {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.lists[project]; r != nil && time.Now().Before(r.fresh) {
		return r
	}
	return nil
}

// keep keeps a roster, and drops those that nobody has asked for lately.
func (rs *rosters) keep(project string, r *roster) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for len(rs.lists) >= maxCachedHostLists && rs.lists[project] == nil {
		oldest := ""
		for name, k := range rs.lists {
			if oldest == "" || k.at.Before(rs.lists[oldest].at) {
				oldest = name
			}
		}
		delete(rs.lists, oldest)
	}
	rs.lists[project] = r
	if rs.drop == nil {
		rs.drop = time.AfterFunc(rosterLinger, rs.sweep)
	}
}

// sweep drops what is too old, until nothing is left.
func (rs *rosters) sweep() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := time.Now()
	for name, r := range rs.lists {
		if now.After(r.fresh) {
			delete(rs.lists, name)
		}
	}
	if rs.drop = nil; len(rs.lists) > 0 {
		rs.drop = time.AfterFunc(rosterLinger, rs.sweep)
	}
}
