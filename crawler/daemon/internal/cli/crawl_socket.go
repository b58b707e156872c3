package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
)

// errCrawlEnds is the error of a question that comes, or is still open, when the crawl ends.
var errCrawlEnds = errors.New("the crawl ends: ask again when it has ended")

// serveQuestions answers questions about a crawl at the socket of its directory, so that
// commands can look into it while it runs. The func that it returns ends that: no question is
// open, and the socket is gone, when it has returned.
func (a *program) serveQuestions(j *foregroundRun, dir datadir.StateDir, lock *datadir.DirectoryLock) (stop func()) {
	listener, err := dir.ListenSocket(context.Background(), lock)
	if err != nil {
		// Some file systems do not support sockets, and a full disk has no room for one.
		a.Log.Warn("the crawl has no socket: commands cannot look into it while it runs", "error", err)
		return func() {}
	}
	serveCtx, end := context.WithCancelCause(context.Background())
	var openQuestions sync.RWMutex // read-locked by each question while it uses the engine
	crawl := &inspect.RunningCrawl{Name: "the crawl", WithEngine: func(ctx context.Context, do func(context.Context, *engine.Engine) error) error {
		openQuestions.RLock()
		defer openQuestions.RUnlock()
		if serveCtx.Err() != nil {
			return context.Cause(serveCtx)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(serveCtx, func() { cancel(errCrawlEnds) })()
		return do(ctx, j.Engine)
	}}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.NewCrawlServer(crawl, a.Log).ServeSocket(serveCtx, listener); err != nil {
			a.Log.Error("the crawl's socket is not served any more", "error", err)
		}
	})
	return func() {
		end(errCrawlEnds)
		serving.Wait()
		openQuestions.Lock()
		defer openQuestions.Unlock()
		if err := dir.RemoveSocket(); err != nil {
			a.Log.Warn("the crawl's socket could not be removed", "error", err)
		}
	}
}
