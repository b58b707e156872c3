package daemon

import (
	"context"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// consult lets do work with the project's rooms and the state that they are on,
// whatever the project does meanwhile: those of the run that goes on, or some
// without a crawl.
// ctx is done, too, when the state is out of reach: nobody waits for that.
func (r *runner) consult(ctx context.Context, do func(context.Context, *crawlEngine, stores) error) error {
	if r.lost() != nil {
		return r.unavailable(nil)
	}
	files, err := r.vault.enter()
	if err != nil {
		return r.unavailable(err)
	}
	defer r.vault.leave()
	engine, err := r.engineForStores(files)
	if err != nil {
		return err
	}
	ctx, stop := r.withinReach(ctx)
	defer stop()
	if err = do(ctx, engine, files); err != nil {
		return r.unavailable(err)
	}
	return nil
}

// engineForStores returns the project's rooms on files that are open.
func (r *runner) engineForStores(files stores) (*crawlEngine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ed := r.orders.edition
	switch {
	case r.engine != nil && r.engine.files == files && (r.interrupt != nil || r.engineProject == ed):
		return r.engine, nil
	case ed == nil:
		return nil, api.Conflict("%s has no project file that makes sense: %s", r.name, r.orders.may())
	}
	engine, err := ground{
		files: files, confined: ed.confined, log: r.app.log, waits: true,
		discovered: r.metrics.Discovered, refused: r.metrics.Refused,
	}.open(ed.project, ed.roots, nil)
	if err == nil {
		r.engine, r.engineProject = engine, ed
	}
	return engine, err
}

// occupy makes rooms, of an edition, those of the project.
func (r *runner) occupy(engine *crawlEngine, ed *edition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine, r.engineProject = engine, ed
}

// vacate lets go of the rooms, and of all that a crawl had in memory.
func (r *runner) vacate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine, r.engineProject = nil, nil
}

// stir has a project go on that had nothing left: URLs were added to it, by way of
// rooms. A run that knows of them goes on itself, unless it was at its end.
func (r *runner) stir(engine *crawlEngine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupt != nil && r.engine == engine {
		r.stirred = true
		return
	}
	r.command(func(*orders) {})
}
