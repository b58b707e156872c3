package supervisor

import (
	"context"
	"errors"
	"sync"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
)

// withEngine calls do with an engine of the project, whose stores are open: the engine of the
// present run, or one without a crawl. The context of do ends, too, when the stores become
// unavailable, or have to close.
func (r *projectRunner) withEngine(ctx context.Context, do func(context.Context, *engine.Engine) error) error {
	if r.availability.err() != nil {
		return r.availability.wrapIfUnavailable(nil)
	}
	stores, err := r.storeHandle.acquire()
	if err != nil {
		return r.availability.wrapIfUnavailable(err)
	}
	defer r.storeHandle.release()
	crawl, err := r.engine.getOrCreate(stores, r.newInspectionEngine)
	if err != nil {
		return err
	}
	ctx, stop := r.availability.contextWhileAvailable(ctx)
	defer stop()
	ctx, stopQuestion := r.storeHandle.questionContext(ctx)
	defer stopQuestion()
	err = do(ctx, crawl)
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) == errStoreClosing && (errors.Is(err, context.Canceled) || errors.Is(err, errStoreClosing)):
		return errStoreClosing
	}
	return r.availability.wrapIfUnavailable(err)
}

// newInspectionEngine returns an engine without a crawl.
func (r *projectRunner) newInspectionEngine(stores datadir.CrawlStores, loaded *loadedProject) (*engine.Engine, error) {
	return engine.Config{
		Stores: stores, Confinement: loaded.pathConfinement, Log: r.env.Log, WaitForRevisitsAndSuspensions: true,
		OnNewURLQueued: r.metrics.CountNewURLQueued, OnRefused: r.metrics.CountRefusedURL,
	}.NewWithoutCrawler(loaded.project, loaded.firstSeedPerOrigin, nil)
}

// A currentEngine is the engine of a project: that of the present run, or, between runs, one
// without a crawl that answers questions. Its lock is taken before that of state.
type currentEngine struct {
	state *projectLifecycle

	mu     sync.Mutex     // guards the fields below
	engine *engine.Engine // nil: there is none
	loaded *loadedProject // that engine is of
}

// getOrCreate returns the engine on stores, which create makes if there is none of the last
// valid project file. A run keeps its engine.
func (c *currentEngine) getOrCreate(
	stores datadir.CrawlStores, create func(datadir.CrawlStores, *loadedProject) (*engine.Engine, error),
) (*engine.Engine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	loaded, isRunning, blockedReason := c.state.projectToInspect()
	switch {
	case c.engine != nil && c.engine.Stores == stores && (isRunning || c.loaded == loaded):
		return c.engine, nil
	case loaded == nil:
		return nil, api.Conflict("%s has no project file that makes sense: %s", c.state.name, blockedReason)
	}
	crawl, err := create(stores, loaded)
	if err == nil {
		c.engine, c.loaded = crawl, loaded
	}
	return crawl, err
}

// set makes crawl, the engine of a run that begins, the current one.
func (c *currentEngine) set(crawl *engine.Engine, loaded *loadedProject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine, c.loaded = crawl, loaded
}

// clear lets go of the engine, and of all that a crawl had in memory.
func (c *currentEngine) clear() { c.set(nil, nil) }

// resumeForNewURLs has the project go on, to which URLs were added by way of crawl.
func (c *currentEngine) resumeForNewURLs(crawl *engine.Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.resumeForNewURLs(c.engine == crawl)
}

// halt breaks off the visits under way.
func (c *currentEngine) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine != nil && c.engine.Crawler != nil {
		c.engine.Crawler.Halt()
	}
}

// activeVisits returns the visits under way whose request was made.
func (c *currentEngine) activeVisits() []api.ActiveVisit {
	c.mu.Lock()
	var current *crawler.Crawler
	if c.engine != nil && c.state.isRunning() {
		current = c.engine.Crawler
	}
	c.mu.Unlock()
	visits := []api.ActiveVisit{}
	if current == nil {
		return visits
	}
	for _, h := range current.ListActiveVisits() {
		if !h.RequestedAt.IsZero() {
			visits = append(visits, api.ActiveVisit{URL: h.URL.String(), Host: h.Host, RequestedAt: h.RequestedAt.UTC(), Kind: visitKind(h)})
		}
	}
	return visits
}

// visitKind says what a visit is to.
func visitKind(h crawler.ActiveVisit) string {
	switch {
	case h.Kind.IsRobots():
		return "robots"
	case h.Kind == crawler.SitemapVisit:
		return "sitemap"
	}
	return "page"
}
