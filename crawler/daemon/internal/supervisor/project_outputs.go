package supervisor

import (
	"context"
	"errors"
	"sync"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// A projectOutputs is the open output files of a project. They are open during a run; the stores
// stay open longer.
type projectOutputs struct {
	mu sync.Mutex // guards the fields below
	sinks.Outputs
	syncErr      error // why lines may be missing on the disk
	filesChecked bool  // the files were checked after the state was opened
}

// openForProject opens the outputs of a project, and sets them in g.
func (r *projectOutputs) openForProject(env *engine.Dependencies, loaded *loadedProject, g *engine.Config) error {
	durable, err := datadir.StateDir(loaded.project.Store.Path).DurableOutputLengthsFromStores(context.Background(), g.Stores)
	if err != nil {
		return err
	}
	// Files are checked once for each opening of the stores.
	r.mu.Lock()
	durable.UncheckedSinceUncleanClose = durable.UncheckedSinceUncleanClose && !r.filesChecked
	r.mu.Unlock()
	cfg, err := engine.NewSinksConfig(&loaded.project, loaded.pathConfinement)
	if err != nil {
		return err
	}
	cfg.Resume, cfg.Durable, cfg.Stdout, cfg.Log, cfg.OnDiskFull = true, durable, env.StandardOutput, env.Log, env.OnDiskFull
	o, err := sinks.Open(cfg)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Outputs, g.Outputs, r.filesChecked = o, o, true
	return nil
}

// sync returns when all that was written down is on the disk: see
// bolt.Options.BeforeWrite. What was lost once keeps the acks of its visits from being
// written until the state is opened anew, so that they are made again.
func (r *projectOutputs) sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.syncErr != nil {
		return r.syncErr
	}
	return r.Outputs.Sync()
}

// durableExtents returns how much of each file is on the disk; nil while none is open.
func (r *projectOutputs) durableExtents(d datadir.StateDir) []bolt.OutputFileExtent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Outputs.DurableExtents(d)
}

// close closes what is open.
func (r *projectOutputs) close() error {
	err := r.sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncErr = err
	err = errors.Join(err, r.Outputs.Close())
	r.Outputs = sinks.Outputs{}
	return err
}

// resetForStoreReopen lets a state that is opened anew be written.
func (r *projectOutputs) resetForStoreReopen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncErr, r.filesChecked = nil, false
}
