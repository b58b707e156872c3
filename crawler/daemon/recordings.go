package daemon

import (
	"errors"
	"sync"
)

// Recordings are where a project of a daemon writes its visits down: they are open
// while it runs, and its state is longer.
type recordings struct {
	mu      sync.Mutex
	out     *output
	archive *archive
	lost    error // why lines may be missing on the disk
}

// open opens the output and the archive of a project.
func (r *recordings) open(a *app, p Project) (*output, *archive, error) {
	out, err := a.openOutput(stateDir(p.Store.Path), p, start{resume: true})
	if err != nil {
		return nil, nil, err
	}
	arc, err := a.openArchive(p)
	if err != nil {
		return nil, nil, errors.Join(err, out.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out, r.archive = out, arc
	return out, arc, nil
}

// sync returns when all that was written down is on the disk: see
// bolt.Options.Before. What was lost once keeps the acks of its visits from being
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
	return errors.Join(r.out.Sync(), r.archive.Sync())
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
	err = errors.Join(err, r.out.Close(), r.archive.Close())
	r.out, r.archive = nil, nil
	return err
}

// forget lets a state that is opened anew be written.
func (r *recordings) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = nil
}
