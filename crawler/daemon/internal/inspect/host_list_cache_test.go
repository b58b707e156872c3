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

// A list is made once for all who ask within a second, or within ten times as long
// as it took; of few projects at a time; and is forgotten when nobody asks.
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
				t.Errorf("%d are made, want %d", got, n)
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
			t.Errorf("%d are kept, want %d", n, maxCachedHostLists)
		}
		time.Sleep(2 * hostListSweepInterval)
		synctest.Wait()
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if len(rs.lists) != 0 || rs.sweepTimer != nil {
			t.Errorf("%d are kept for nobody", len(rs.lists))
		}
	})
}

// Who waits for a list goes when its context ends; a failure is not kept.
func TestHostListCacheErrors(t *testing.T) {
	rs, broken := NewHostListCache(), errors.New("the disk is gone")
	if _, err := rs.GetOrBuild(t.Context(), "a", func() (*HostListSnapshot, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("made of nothing: %v", err)
	}
	rs.buildSlot <- struct{}{} // somebody makes another
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rs.GetOrBuild(ctx, "a", func() (*HostListSnapshot, error) { return &HostListSnapshot{}, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("waits on: %v", err)
	}
}
