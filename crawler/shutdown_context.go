package crawler

import (
	"context"
	"time"
)

// commitTimeout is how long what was fetched may still take to reach the store when
// the visits in hand have been broken off. It takes as long only if the store
// cannot write.
const commitTimeout = 5 * time.Second

// drainContextKey is the key of the context that outlives the visits in hand.
type drainContextKey struct{}

// graceContext returns the context of the visits in hand: it outlives ctx by
// GracePeriod, unless Halt ends it. done frees what it holds.
func (c *Crawler) graceContext(ctx context.Context, stop context.CancelCauseFunc) (work context.Context, done func()) {
	commitCtx, cancelCommit := context.WithCancel(context.WithoutCancel(ctx))
	work, cancel := context.WithCancel(context.WithValue(commitCtx, drainContextKey{}, commitCtx))
	c.mu.Lock()
	c.cancelRun = func() {
		stop(ErrHalted)
		cancel()
	}
	c.mu.Unlock()
	cancelWithDelay(ctx, commitCtx, c.Settings.GracePeriod, cancel)
	cancelWithDelay(work, commitCtx, commitTimeout, cancelCommit)
	return work, cancelCommit
}

// cancelWithDelay calls cancel d after ctx is done, unless after is done before.
func cancelWithDelay(ctx, commitCtx context.Context, d time.Duration, cancel func()) {
	context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(commitCtx, func() { t.Stop() })
	})
}

// commitContext returns the context for keeping what a visit brought: it outlives
// ctx, that of the visit, by settling. So what was done is kept even when the
// crawl is being halted, and a store that cannot write holds nobody for good.
func commitContext(ctx context.Context) context.Context {
	if commitCtx, ok := ctx.Value(drainContextKey{}).(context.Context); ok {
		return commitCtx
	}
	return context.WithoutCancel(ctx)
}
