package crawler

import (
	"context"
	"time"
)

// settling is how long what was fetched may still take to reach the store when
// the visits in hand have been broken off. It takes as long only if the store
// cannot write.
const settling = 5 * time.Second

// afterKey is the key of the context that outlives the visits in hand.
type afterKey struct{}

// workContext returns the context of the visits in hand: it outlives ctx by
// Grace, unless Halt ends it. done frees what it holds.
func (c *Crawler) workContext(ctx context.Context, stop context.CancelCauseFunc) (work context.Context, done func()) {
	after, settled := context.WithCancel(context.WithoutCancel(ctx))
	work, cancel := context.WithCancel(context.WithValue(after, afterKey{}, after))
	c.mu.Lock()
	c.halt = func() {
		stop(ErrHalted)
		cancel()
	}
	c.mu.Unlock()
	outlive(ctx, after, c.Settings.Grace, cancel)
	outlive(work, after, settling, settled)
	return work, settled
}

// outlive calls cancel d after ctx is done, unless after is done before.
func outlive(ctx, after context.Context, d time.Duration, cancel func()) {
	context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(after, func() { t.Stop() })
	})
}

// afterwards returns the context for keeping what a visit brought: it outlives
// ctx, that of the visit, by settling. So what was done is kept even when the
// crawl is being halted, and a store that cannot write holds nobody for good.
func afterwards(ctx context.Context) context.Context {
	if after, ok := ctx.Value(afterKey{}).(context.Context); ok {
		return after
	}
	return context.WithoutCancel(ctx)
}
