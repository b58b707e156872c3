package supervisor

import (
	"context"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
)

// withCrawlComponents lets do work with the project's rooms and the state that they are on,
// whatever the project does meanwhile: those of the run that goes on, or some
// without a crawl.
// ctx is done, too, when the state is out of reach: nobody waits for that.
func (r *projectRunner) withCrawlComponents(ctx context.Context, do func(context.Context, *engine.Engine, datadir.CrawlStores) error) error {
	if r.storeAvailabilityError() != nil {
		return r.wrapErrorIfUnavailable(nil)
	}
	stores, err := r.storeHandle.acquire()
	if err != nil {
		return r.wrapErrorIfUnavailable(err)
	}
	defer r.storeHandle.release()
	crawl, err := r.getOrCreateEngine(stores)
	if err != nil {
		return err
	}
	ctx, stop := r.contextWhileStoreAvailable(ctx)
	defer stop()
	if err = do(ctx, crawl, stores); err != nil {
		return r.wrapErrorIfUnavailable(err)
	}
	return nil
}

// getOrCreateEngine returns the project's rooms on files that are open.
func (r *projectRunner) getOrCreateEngine(stores datadir.CrawlStores) (*engine.Engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	loaded := r.command.lastValidProject
	switch {
	case r.engine != nil && r.engine.Stores == stores && (r.interruptRun != nil || r.engineProject == loaded):
		return r.engine, nil
	case loaded == nil:
		return nil, api.Conflict("%s has no project file that makes sense: %s", r.name, r.command.blockedReason())
	}
	crawl, err := engine.Config{
		Stores: stores, Confinement: loaded.pathConfinement, Log: r.env.Log, WaitForRevisitsAndSuspensions: true,
		OnNewURLQueued: r.metrics.CountNewURLQueued, OnRefused: r.metrics.CountRefusedURL,
	}.NewWithoutCrawler(loaded.project, loaded.firstSeedPerOrigin, nil)
	if err == nil {
		r.engine, r.engineProject = crawl, loaded
	}
	return crawl, err
}

// setEngine makes rooms, of an edition, those of the project.
func (r *projectRunner) setEngine(crawl *engine.Engine, loaded *loadedProject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine, r.engineProject = crawl, loaded
}

// clearEngine lets go of the rooms, and of all that a crawl had in memory.
func (r *projectRunner) clearEngine() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine, r.engineProject = nil, nil
}

// resumeForNewURLs has a project go on that had nothing left: URLs were added to it, by way of
// rooms. A run that knows of them goes on itself, unless it was at its end.
func (r *projectRunner) resumeForNewURLs(crawl *engine.Engine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interruptRun != nil && r.engine == crawl {
		r.wereURLsAddedDuringRun = true
		return
	}
	r.updateRunnerCommandLocked(func(*runnerCommand) {})
}
