package client

import (
	"context"
	"sync"
	"sync/atomic"
)

// maxParallelCalls is how many goroutines InParallel starts at most.
const maxParallelCalls = 16

// InParallel calls do for each element of all, up to maxParallelCalls at a time, until a call returns
// an error or ctx is done. It returns that error, or the cause of ctx, after all calls have ended.
func InParallel[T any](ctx context.Context, all []T, do func(T) error) error {
	if len(all) == 1 {
		return do(all[0])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(maxParallelCalls, len(all)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				if err := do(all[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
