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

// projectOutputs holds the output files of a project. They are open during a run; the stores can stay
// open longer.
type projectOutputs struct {
	mu            sync.Mutex // guards Outputs, syncErr and filesChecked
	sinks.Outputs            // zero between runs
	syncErr       error      // why a part of the outputs may be missing on the disk
	filesChecked  bool       // the files were checked since the stores were opened
}

// openForProject opens the outputs of a project, and sets them in g. It continues each file where the
// stores say that the disk holds it.
func (r *projectOutputs) openForProject(env *engine.Dependencies, loaded *loadedProject, g *engine.Config) error {
	durable, err := datadir.StateDir(loaded.project.Store.Path).DurableOutputLengthsFromStores(context.Background(),
		g.Stores)
	if err != nil {
		return err
	}
	// After an unclean end, the files are checked once for each opening of the stores.
	r.mu.Lock()
	durable.UncheckedSinceUncleanClose = durable.UncheckedSinceUncleanClose && !r.filesChecked
	r.mu.Unlock()
	cfg, err := engine.NewSinksConfig(&loaded.project, loaded.pathConfinement)
	if err != nil {
		return err
	}
	cfg.Resume, cfg.Durable, cfg.Stdout, cfg.Log, cfg.OnDiskFull = true, durable,
		env.StandardOutput, env.Log, env.OnDiskFull
	o, err := sinks.Open(cfg)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Outputs, g.Outputs, r.filesChecked = o, o, true
	return nil
}

// sync returns when all that was written to the outputs is on the disk. The stores call it before they
// write acks: see bolt.Options.BeforeWrite. After one failure it fails until the stores are opened
// again, so that the visits whose output was lost are not acked, and are repeated.
func (r *projectOutputs) sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.syncErr != nil {
		return r.syncErr
	}
	return r.Outputs.Sync()
}

// durableExtents returns how much of each output file is on the disk, or nil while none is open.
func (r *projectOutputs) durableExtents(d datadir.StateDir) []bolt.OutputFileExtent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Outputs.DurableExtents(d)
}

// close syncs and closes the outputs.
func (r *projectOutputs) close() error {
	err := r.sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncErr = err
	err = errors.Join(err, r.Outputs.Close())
	r.Outputs = sinks.Outputs{}
	return err
}

// resetForStoreReopen clears the errors and checks that belong to the previous opening of the stores.
func (r *projectOutputs) resetForStoreReopen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.syncErr, r.filesChecked = nil, false
}
