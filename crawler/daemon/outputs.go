package daemon

import (
	"errors"
	"io/fs"
	"strconv"
)

// allowedFileModes are the modes that files of output may have; the first is the default.
var allowedFileModes = []string{"0600", "0640", "0644"}

// fileMode returns output.mode, of a project that has been checked.
func (o *OutputSettings) fileMode() fs.FileMode {
	mode, err := strconv.ParseUint(o.FileMode, 8, 9)
	if err != nil {
		return privateFileMode
	}
	return fs.FileMode(mode)
}

// Outputs are where a crawl writes its visits down.
type outputs struct {
	jsonl   *jsonlRecorder
	archive *warcArchive  // nil: none
	ledger  *ledgerWriter // nil: none
}

// openOutputs opens the outputs of a project. s.known says how many of their bytes are
// on the disk.
func (a *program) openOutputs(p Project, s crawlOptions) (o outputs, err error) {
	if o.jsonl, err = a.openJSONLAndMoveOldCrawl(stateDir(p.Store.Path), p, s); err != nil {
		return outputs{}, err
	}
	if o.archive, err = a.openArchive(p, s.confinement, s.durableOutputLengths); err != nil {
		return outputs{}, errors.Join(err, o.jsonl.Close())
	}
	if o.ledger, err = a.openLedgerWriter(p, s.confinement, s.durableOutputLengths); err != nil {
		return outputs{}, errors.Join(err, o.archive.Close(), o.jsonl.Close())
	}
	return o, nil
}

// sync returns when all that was written down is on the disk. A crash may repeat
// what was recorded of a visit, and must not miss it: see bolt.Options.BeforeWrite.
func (o outputs) sync() error {
	return errors.Join(o.jsonl.Sync(), o.archive.Sync(), o.ledger.Sync())
}

// close ends what was written down.
func (o outputs) close() error {
	return errors.Join(o.ledger.Close(), o.archive.Close(), o.jsonl.Close())
}
