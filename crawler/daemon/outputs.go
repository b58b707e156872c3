package daemon

import (
	"errors"
	"io/fs"
	"strconv"
)

// fileModes are the modes that files of output may have; the first is the default.
var fileModes = []string{"0600", "0640", "0644"}

// fileMode returns output.mode, of a project that has been checked.
func (o *Output) fileMode() fs.FileMode {
	mode, err := strconv.ParseUint(o.Mode, 8, 9)
	if err != nil {
		return privateFile
	}
	return fs.FileMode(mode)
}

// Outputs are where a crawl writes its visits down.
type outputs struct {
	out     *output
	archive *archive      // nil: none
	proof   *ledgerWriter // nil: none
}

// openOutputs opens the outputs of a project. s.known says how many of their bytes are
// on the disk.
func (a *app) openOutputs(p Project, s start) (o outputs, err error) {
	if o.out, err = a.openOutput(stateDir(p.Store.Path), p, s); err != nil {
		return outputs{}, err
	}
	if o.archive, err = a.openArchive(p, s.confined, s.known); err != nil {
		return outputs{}, errors.Join(err, o.out.Close())
	}
	if o.proof, err = a.openLedgerWriter(p, s.confined, s.known); err != nil {
		return outputs{}, errors.Join(err, o.archive.Close(), o.out.Close())
	}
	return o, nil
}

// sync returns when all that was written down is on the disk. A crash may repeat
// what was recorded of a visit, and must not miss it: see bolt.Options.BeforeWrite.
func (o outputs) sync() error {
	return errors.Join(o.out.Sync(), o.archive.Sync(), o.proof.Sync())
}

// close ends what was written down.
func (o outputs) close() error {
	return errors.Join(o.proof.Close(), o.archive.Close(), o.out.Close())
}
