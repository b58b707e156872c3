package daemon

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A sinksConfig says which outputs a crawl writes, and how they are opened.
type sinksConfig struct {
	stateDir     datadir.StateDir
	productToken string      // of the crawl's agent, for the verdicts of outputs
	fileMode     fs.FileMode // of every file

	jsonlPath         string // "-": stdout; empty: datadir.OutputFile in stateDir
	jsonlMaxFileBytes int64  // bytes; 0: no limit
	writeBodies       bool
	warc              *warc.Config   // nil: no WARC files. What opening decides is left empty
	ledger            *ledger.Config // nil: no ledger. What opening decides is left empty

	resume, startFresh bool
	pathConfinement    *confine.Paths               // of the files that the project names; nil: none
	durable            datadir.DurableOutputLengths // how much of each file is on the disk, by the state
	stdout             io.Writer                    // for jsonlPath "-"
	log                *slog.Logger
	onDiskFull         func(error) // see retryWhileDiskFull; may be nil
}

// outputs are the files that a crawl writes its visits to.
type outputs struct {
	jsonl   *jsonlRecorder
	archive *warcArchive  // nil: none
	ledger  *ledgerWriter // nil: none
}

// openOutputs opens the outputs of a crawl.
func openOutputs(cfg sinksConfig) (o outputs, err error) {
	if o.jsonl, err = openJSONLAndMoveOldIfFresh(&cfg); err != nil {
		return outputs{}, err
	}
	if o.archive, err = openArchive(&cfg); err != nil {
		return outputs{}, errors.Join(err, o.jsonl.Close())
	}
	if o.ledger, err = openLedgerWriter(&cfg); err != nil {
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

// openJSONLAndMoveOldIfFresh opens the file of lines. If the crawl starts afresh, it moves an
// earlier crawl out of the way after it has opened a file that the user chose: if that
// file cannot be opened, nothing is moved.
func openJSONLAndMoveOldIfFresh(cfg *sinksConfig) (out *jsonlRecorder, err error) {
	dir, openFile := cfg.stateDir, jsonlOptions{
		confinement: cfg.pathConfinement, path: cfg.jsonlPath, maxFileBytes: cfg.jsonlMaxFileBytes, fileMode: cfg.fileMode,
		stdout: cfg.stdout, resume: cfg.resume, durable: cfg.durable,
	}
	if openFile.path != "" {
		if dir.IsOwnStateFile(openFile.path) {
			return nil, usage.Errorf("--output: %s is a file of the crawl's own state; name another", openFile.path)
		}
		if out, err = openJSONLRecorder(openFile); err != nil {
			return nil, err
		}
	}
	if cfg.startFresh {
		var rotated []string
		if rotated, err = rotatedFileNames(dir.Path(datadir.OutputFile)); err == nil {
			err = dir.MoveOldCrawl(time.Now(), rotated)
		}
	}
	if out == nil && err == nil {
		openFile.confinement, openFile.path = nil, dir.Path(datadir.OutputFile)
		out, err = openJSONLRecorder(openFile)
	}
	if err != nil && out != nil {
		return nil, errors.Join(err, out.Close())
	}
	if out == nil {
		return nil, err
	}
	out.productToken, out.log, out.onDiskFull = cfg.productToken, cfg.log, cfg.onDiskFull
	if cfg.writeBodies {
		if out.bodies, err = openBodyStore(dir.Path(datadir.BodiesDir), cfg.fileMode); err != nil {
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}
