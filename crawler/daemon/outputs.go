package daemon

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/bolt"
)

// outputOptions say how the outputs of a crawl are opened.
type outputOptions struct {
	resume, startFresh bool
	pathConfinement    *pathConfinement             // of the files that the project names; nil: none
	durable            datadir.DurableOutputLengths // how much of each file is on the disk, by the state
	stdout             io.Writer                    // for output.jsonl: "-"
	log                *slog.Logger
	onDiskFull         func(error) // see retryWhileDiskFull; may be nil
}

// Outputs are where a crawl writes its visits down.
type outputs struct {
	jsonl   *jsonlRecorder
	archive *warcArchive  // nil: none
	ledger  *ledgerWriter // nil: none
}

// openOutputs opens the outputs of a project.
func openOutputs(p project.Project, opts outputOptions) (o outputs, err error) {
	if o.jsonl, err = openJSONLAndMoveOldIfFresh(datadir.StateDir(p.Store.Path), p, opts); err != nil {
		return outputs{}, err
	}
	if o.archive, err = openArchive(p, opts); err != nil {
		return outputs{}, errors.Join(err, o.jsonl.Close())
	}
	if o.ledger, err = openLedgerWriter(p, opts); err != nil {
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
func (o outputs) durableExtents(d datadir.StateDir) (files []bolt.OutputFileExtent) {
	if o.jsonl == nil {
		return nil
	}
	if serial, size, ok := o.jsonl.file.durableExtent(); ok {
		files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(o.jsonl.file.name), Serial: serial, SyncedSize: size})
	}
	if o.archive != nil {
		if e := o.archive.archive.DurableExtent(); e.FileName != "" {
			files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(o.archive.dirPath), Name: e.FileName, SyncedSize: e.Size})
		}
	}
	if o.ledger != nil {
		if e := o.ledger.ledger.DurableExtent(); e.SegmentSerial != 0 {
			files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(d.Path(datadir.LedgerDir)), Serial: int64(e.SegmentSerial), SyncedSize: e.Size})
		}
	}
	return files
}

// openJSONLAndMoveOldIfFresh opens the output, and moves what is in the way of a crawl that
// starts anew: an output of the user's choice is tried first.
func openJSONLAndMoveOldIfFresh(dir datadir.StateDir, p project.Project, opts outputOptions) (out *jsonlRecorder, err error) {
	name := p.Output.JSONL
	if name != "" {
		if dir.IsOwnStateFile(name) {
			return nil, usage.Errorf("--output: %s is a file of the crawl's own state; name another", name)
		}
		out, err = openJSONLRecorder(opts.pathConfinement, name, p.Output.JSONLMaxFileSize, p.Output.FileModeBits(), opts.stdout, opts.resume, opts.durable)
		if err != nil {
			return nil, err
		}
	}
	if opts.startFresh {
		var rotated []string
		if rotated, err = rotatedFileNames(dir.Path(datadir.OutputFile)); err == nil {
			err = dir.MoveOldCrawl(time.Now(), rotated)
		}
	}
	if out == nil && err == nil {
		out, err = openJSONLRecorder(
			nil, dir.Path(datadir.OutputFile), p.Output.JSONLMaxFileSize, p.Output.FileModeBits(), opts.stdout, opts.resume, opts.durable)
	}
	if err != nil && out != nil {
		return nil, errors.Join(err, out.Close())
	}
	if out == nil {
		return nil, err
	}
	out.productToken, out.log, out.onDiskFull = p.Agent.Product, opts.log, opts.onDiskFull
	if p.Output.WriteBodies {
		if out.bodies, err = openBodyStore(dir.Path(datadir.BodiesDir), p.Output.FileModeBits()); err != nil {
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}
