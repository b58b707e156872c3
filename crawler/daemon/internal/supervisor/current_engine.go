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

// withEngine calls do with an engine of the project whose stores are open: the engine of the current
// run or, between runs, one without a crawler. The context of do also ends when the stores become
// unavailable or must close. If they do, the error is an api.Unavailable error; a project that never had
// a valid file is an api.Conflict error.
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
	// Cancel the query when the stores fail, or when a stop, a deletion or a new file needs them closed.
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

// newInspectionEngine returns an engine without a crawler, for queries between runs.
func (r *projectRunner) newInspectionEngine(stores datadir.CrawlStores, loaded *loadedProject) (*engine.Engine, error) {
	return engine.Config{
		Stores: stores, Confinement: loaded.pathConfinement, Log: r.env.Log, WaitForRevisitsAndSuspensions: true,
		OnNewURLQueued: r.metrics.CountNewURLQueued, OnRefused: r.metrics.CountRefusedURL,
	}.NewWithoutCrawler(loaded.project, loaded.firstSeedPerOrigin, nil)
}

// A currentEngine holds the engine of a project: the engine of the current run or, between runs, one
// without a crawler that answers queries.
type currentEngine struct {
	state *projectLifecycle

	mu     sync.Mutex     // guards engine and loaded
	engine *engine.Engine // nil: none was built since the stores were opened
	loaded *loadedProject // the file that engine was built from
}

// getOrCreate returns the engine on stores. Unless the engine on these stores is that of the current
// run, or of the last valid project file, it calls create and keeps the result.
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
		return nil, api.Conflict("%s has no valid project file: %s", c.state.name, blockedReason)
	}
	crawl, err := create(stores, loaded)
	if err == nil {
		c.engine, c.loaded = crawl, loaded
	}
	return crawl, err
}

// set makes crawl, the engine of a new run, the current engine.
func (c *currentEngine) set(crawl *engine.Engine, loaded *loadedProject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine, c.loaded = crawl, loaded
}

// clear drops the engine and the memory of its crawl. The storeHandle calls it before the stores close.
func (c *currentEngine) clear() { c.set(nil, nil) }

// resumeForNewURLs lets the project crawl URLs that were added through crawl.
func (c *currentEngine) resumeForNewURLs(crawl *engine.Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.resumeForNewURLs(c.engine == crawl)
}

// halt ends the current crawl and cancels its active visits.
func (c *currentEngine) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine != nil && c.engine.Crawler != nil {
		c.engine.Crawler.Halt()
	}
}

// activeVisits returns the active visits whose request was sent.
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
			visits = append(visits, api.ActiveVisit{URL: h.URL.String(), Host: h.Host,
				RequestedAt: h.RequestedAt.UTC(), Kind: visitKind(h)})
		}
	}
	return visits
}

// visitKind returns the kind of a visit as the API names it: "robots", "sitemap" or "page".
func visitKind(h crawler.ActiveVisit) string {
	switch {
	case h.Kind.IsRobots():
		return "robots"
	case h.Kind == crawler.SitemapVisit:
		return "sitemap"
	}
	return "page"
}
