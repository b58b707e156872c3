package daemon

import (
	"errors"

	"github.com/decorum-crawler/decorum/storage/bolt"
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

// durableExtents returns how much of each file is on the disk: see bolt.Options.ListOutputFiles.
func (o outputs) durableExtents(d stateDir) (files []bolt.OutputFileExtent) {
	if o.jsonl == nil {
		return nil
	}
	if serial, size, ok := o.jsonl.file.durableExtent(); ok {
		files = append(files, bolt.OutputFileExtent{Path: d.pathToRecord(o.jsonl.file.name), Serial: serial, SyncedSize: size})
	}
	if o.archive != nil {
		if e := o.archive.archive.DurableExtent(); e.FileName != "" {
			files = append(files, bolt.OutputFileExtent{Path: d.pathToRecord(o.archive.dirPath), Name: e.FileName, SyncedSize: e.Size})
		}
	}
	if o.ledger != nil {
		if e := o.ledger.ledger.DurableExtent(); e.SegmentSerial != 0 {
			files = append(files, bolt.OutputFileExtent{Path: d.pathToRecord(d.path(ledgerDir)), Serial: int64(e.SegmentSerial), SyncedSize: e.Size})
		}
	}
	return files
}
