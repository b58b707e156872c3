package daemon

import (
	"errors"
)

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
