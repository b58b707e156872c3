package cli

import (
	"context"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
)

// errCrawlEnds is the error of a question that comes, or is still open, when the crawl ends.
var errCrawlEnds = api.Unavailable("the crawl ends: ask again when it has ended")

// serveQuestions answers questions about a crawl at the socket of its directory, which lock
// locks, so that commands can look into it while it runs. The func that it returns ends that:
// no question is open when it has returned.
func (a *program) serveQuestions(j *foregroundRun, lock *datadir.DirectoryLock) (stop func()) {
	listener, err := lock.ListenSocket(context.Background())
	if err != nil {
		// Some file systems do not support sockets, and a full disk has no room for one.
		a.Log.Info("the crawl has no socket: commands cannot look into it while it runs", "error", err)
		return func() {}
	}
	serveCtx, end := context.WithCancel(context.Background())
	var openQuestions sync.RWMutex // read-locked by each question while it uses the engine
	crawl := &inspect.RunningCrawl{Name: "the crawl", WithEngine: func(ctx context.Context, do func(context.Context, *engine.Engine) error) error {
		openQuestions.RLock()
		defer openQuestions.RUnlock()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(serveCtx, cancel)()
		err := serveCtx.Err()
		if err == nil {
			err = do(ctx, j.Engine)
		}
		if err != nil && serveCtx.Err() != nil {
			err = errCrawlEnds
		}
		return err
	}}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.NewCrawlServer(crawl, a.Log).ServeSocket(serveCtx, listener); err != nil {
			a.Log.Error("the crawl's socket is not served any more", "error", err)
		}
	})
	return func() {
		end()
		serving.Wait()
		openQuestions.Lock() // an answer that could not be written may still use the engine
		defer openQuestions.Unlock()
	}
}
