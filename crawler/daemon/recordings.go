package daemon

import (
	"context"
	"errors"
	"sync"

	"github.com/decorum-crawler/decorum/storage/bolt"
)

// Recordings are where a project of a daemon writes its visits down: they are open
// while it runs, and its state is longer.
type recordings struct {
	mu sync.Mutex
	outputs
	lost    error // why lines may be missing on the disk
	checked bool  // the files were checked after the state was opened
}

// open opens the outputs of a project, for its ground.
func (r *recordings) open(a *app, ed *edition, g *ground) error {
	known, err := stateDir(ed.project.Store.Path).knownBy(context.Background(), g.files, a.log)
	if err != nil {
		return err
	}
	r.mu.Lock()
	known.unclean = known.unclean && !r.checked
	r.mu.Unlock()
	o, err := a.openOutputs(ed.project, start{resume: true, confined: ed.confined, known: known})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outputs, g.outputs, r.checked = o, o, true
	return nil
}

// sync returns when all that was written down is on the disk: see
// bolt.Options.BeforeWrite. What was lost once keeps the acks of its visits from being
// written until the state is opened anew, so that they are made again.
func (r *recordings) sync() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.lost != nil:
		return r.lost
	case r.out == nil:
		return nil
	}
	return r.outputs.sync()
}

// files returns how much of each file is on the disk; nil while none is open.
func (r *recordings) files(d stateDir) []bolt.OutputFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outputs.files(d)
}

// close closes what is open.
func (r *recordings) close() error {
	err := r.sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		return nil
	}
	r.lost = err
	err = errors.Join(err, r.outputs.close())
	r.outputs = outputs{}
	return err
}

// forget lets a state that is opened anew be written.
func (r *recordings) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.checked = nil, false
}
