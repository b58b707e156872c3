package sinks

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A Config says which outputs a crawl writes, and how Open opens them.
type Config struct {
	StateDir     datadir.StateDir
	ProductToken string      // of the crawl's agent, for robots meta elements that address it
	FileMode     fs.FileMode // of every new file

	JSONLPath         string // "-": Stdout; empty: datadir.OutputFile in StateDir
	JSONLMaxFileBytes int64  // 0: no limit
	WriteBodies       bool
	WriteOutlinks     bool           // list the links of each page in its line
	WARC              *warc.Config   // nil: no WARC files. Open sets the fields that it decides
	Ledger            *ledger.Config // nil: no ledger. Open sets the fields that it decides

	Resume      bool                         // continue the files of an earlier run
	StartFresh  bool                         // move the files of an earlier crawl away
	Confinement *confine.ProjectAccess       // limits the files that the project may name; nil: any
	Durable     datadir.DurableOutputLengths // how much of each file is on the disk, as the stores record it
	Stdout      io.Writer                    // for JSONLPath "-"
	Log         *slog.Logger
	OnDiskFull  func(error) // called with the error when a write begins to wait, with nil when it ends; may be nil
}

// Outputs are the open output files of a crawl.
type Outputs struct {
	JSONL   *JSONLRecorder
	Archive *WARCArchive  // nil: no WARC files
	Ledger  *LedgerWriter // nil: no ledger
}

// Open opens the outputs of a crawl, and repairs the ends of files that a crash has left. The caller has
// locked cfg.StateDir, and must call Close.
func Open(cfg Config) (o Outputs, err error) {
	if cfg.WARC != nil && cfg.StateDir.IsOwnStateFile(cfg.WARC.Dir) {
		return o, usage.Errorf("--warc: %s is a file of the crawl's own state; name another directory", cfg.WARC.Dir)
	}
	if o.JSONL, err = openJSONLAndMoveOldIfFresh(&cfg); err != nil {
		return Outputs{}, err
	}
	if o.Archive, err = openArchive(&cfg); err != nil {
		return Outputs{}, errors.Join(err, o.JSONL.Close())
	}
	if o.Ledger, err = openLedgerWriter(&cfg); err != nil {
		return Outputs{}, errors.Join(err, o.Archive.Close(), o.JSONL.Close())
	}
	return o, nil
}

// Sync returns when all that was written before is on the disk. The stores call it before they write
// acks, so that a crash can repeat the output of a visit, but cannot lose it: see
// bolt.Options.BeforeWrite.
func (o Outputs) Sync() error {
	return errors.Join(o.JSONL.Sync(), o.Archive.Sync(), o.Ledger.Sync())
}

// Close syncs and closes all outputs. Call it after the last write. Stores that stay open, as
// between the runs of a daemon's project, must not call Sync of this Outputs afterwards.
func (o Outputs) Close() error {
	return errors.Join(o.Ledger.Close(), o.Archive.Close(), o.JSONL.Close())
}

// DurableExtents returns how much of each file is on the disk: see bolt.Options.ListOutputFiles. Paths are
// relative to d where possible.
func (o Outputs) DurableExtents(d datadir.StateDir) (files []bolt.OutputFileExtent) {
	if o.JSONL == nil {
		return nil
	}
	if serial, size, ok := o.JSONL.file.durableExtent(); ok {
		files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(o.JSONL.file.name),
			Serial: serial, SyncedSize: size})
	}
	if o.Archive != nil {
		if e := o.Archive.archive.DurableExtent(); e.FileName != "" {
			files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(o.Archive.dirPath),
				Name: e.FileName, SyncedSize: e.Size})
		}
	}
	if o.Ledger != nil {
		if e := o.Ledger.ledger.DurableExtent(); e.SegmentSerial != 0 {
			files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(d.Path(datadir.LedgerDir)),
				Serial: int64(e.SegmentSerial), SyncedSize: e.Size})
		}
	}
	return files
}
