package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestHostListCache: a list is built once for all queries within a second, or within ten times the
// time that it took to build; the cache holds lists of few projects; and it frees expired lists.
func TestHostListCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := NewHostListCache()
		var made atomic.Int32
		ask := func(project string, takes time.Duration) {
			_, err := rs.GetOrBuild(t.Context(), project, func() (*HostListSnapshot, error) {
				made.Add(1)
				time.Sleep(takes)
				return &HostListSnapshot{CreatedAt: time.Now()}, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		want := func(n int32) {
			t.Helper()
			if got := made.Swap(0); got != n {
				t.Errorf("%d lists are built, want %d", got, n)
			}
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { ask("a", time.Millisecond) })
		}
		all.Wait()
		want(1)
		time.Sleep(minHostListTTL)
		ask("a", 500*time.Millisecond)
		want(1)
		time.Sleep(4 * time.Second)
		ask("a", 0)
		want(0)
		time.Sleep(time.Second)
		ask("a", 0)
		want(1)
		for i := range 2 * maxCachedHostLists {
			ask(fmt.Sprint(i), 0)
		}
		rs.mu.Lock()
		n := len(rs.lists)
		rs.mu.Unlock()
		if n != maxCachedHostLists {
			t.Errorf("the cache has %d lists, want %d", n, maxCachedHostLists)
		}
		time.Sleep(2 * hostListSweepInterval)
		synctest.Wait()
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if len(rs.lists) != 0 || rs.sweepTimer != nil {
			t.Errorf("%d expired lists are still in the cache", len(rs.lists))
		}
	})
}

// TestHostListCacheErrors: waiting for a list ends with the caller's context, and the cache does
// not keep errors.
func TestHostListCacheErrors(t *testing.T) {
	rs, broken := NewHostListCache(), errors.New("the disk is gone")
	if _, err := rs.GetOrBuild(t.Context(), "a", func() (*HostListSnapshot, error) {
		return nil, broken
	}); !errors.Is(err, broken) {
		t.Errorf("GetOrBuild without its build error: %v", err)
	}
	rs.buildSlot <- struct{}{} // another list is being built
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rs.GetOrBuild(ctx, "a", func() (*HostListSnapshot, error) {
		return &HostListSnapshot{}, nil
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("GetOrBuild after its context has ended: %v", err)
	}
}
