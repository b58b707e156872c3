package daemon

import "errors"

// Outputs are where a crawl writes its visits down.
type outputs struct {
	out     *output
	archive *archive // nil: none
	proof   *proof   // nil: none
}

// openOutputs opens the outputs of a project.
func (a *app) openOutputs(p Project, s start) (o outputs, err error) {
	if o.out, err = a.openOutput(stateDir(p.Store.Path), p, s); err != nil {
		return outputs{}, err
	}
	if o.archive, err = a.openArchive(p, s.confined); err != nil {
		return outputs{}, errors.Join(err, o.out.Close())
	}
	if o.proof, err = a.openProof(p, s.confined); err != nil {
		return outputs{}, errors.Join(err, o.archive.Close(), o.out.Close())
	}
	return o, nil
}

// sync returns when all that was written down is on the disk. A crash may repeat
// what was recorded of a visit, and must not miss it: see bolt.Options.Before.
func (o outputs) sync() error {
	return errors.Join(o.out.Sync(), o.archive.Sync(), o.proof.Sync())
}

// close ends what was written down.
func (o outputs) close() error {
	return errors.Join(o.proof.Close(), o.archive.Close(), o.out.Close())
}
