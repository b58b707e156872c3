package command

import (
	"context"
	"os"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
)

// An Env is what every command of one call of decorum works with.
type Env struct {
	Stdout  *terminal.StickyErrorWriter
	Stderr  *terminal.StatusLineWriter // standard error
	Signals <-chan os.Signal           // interrupts and SIGTERM
	engine.Dependencies
}

// WithSignalCancel returns a context that the first signal ends, with ErrInterrupted for
// its cause.
func (e *Env) WithSignalCancel(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-e.Signals:
			stop(engine.ErrInterrupted)
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop(nil)
		listening.Wait()
	}
}
