package redis

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/decorum-crawler/decorum/storage"
)

// A caller that comes while a call runs gets the result of another call, which begins afterwards.
func TestCoalescer(t *testing.T) {
	var c callCoalescer
	var calls atomic.Int64
	running, release := make(chan bool), make(chan bool)
	fn := func() error {
		if calls.Add(1) == 1 {
			running <- true
			<-release
		}
		return nil
	}
	var all sync.WaitGroup
	all.Go(func() { c.do(fn) })
	<-running
	all.Go(func() { c.do(fn) })
	for { // until the second caller waits for its call
		c.mu.Lock()
		waits := c.pendingCall != nil
		c.mu.Unlock()
		if waits {
			break
		}
		runtime.Gosched()
	}
	release <- true
	all.Wait()
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls were made, want 2", n)
	}
	if err := c.do(func() error { return storage.ErrWriteStalled }); err != storage.ErrWriteStalled {
		t.Errorf("do returns %v, want the error of its call", err)
	}
}
