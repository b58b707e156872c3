package sinks

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// A Config says which outputs a crawl writes, and how they are opened.
type Config struct {
	StateDir     datadir.StateDir
	ProductToken string      // of the crawl's agent, for the verdicts of outputs
	FileMode     fs.FileMode // of every file

	JSONLPath         string // "-": stdout; empty: datadir.OutputFile in StateDir
	JSONLMaxFileBytes int64  // bytes; 0: no limit
	WriteBodies       bool
	WARC              *warc.Config   // nil: no WARC files. What opening decides is left empty
	Ledger            *ledger.Config // nil: no ledger. What opening decides is left empty

	Resume, StartFresh bool
	Confinement        *confine.ProjectAccess       // of the files that the project names; nil: none
	Durable            datadir.DurableOutputLengths // how much of each file is on the disk, by the state
	Stdout             io.Writer                    // for JSONLPath "-"
	Log                *slog.Logger
	OnDiskFull         func(error) // see diskFullRetrier; may be nil
}

// Outputs are the files that a crawl writes its visits to.
type Outputs struct {
	JSONL   *JSONLRecorder
	Archive *WARCArchive  // nil: none
	Ledger  *LedgerWriter // nil: none
}

// Open opens the outputs of a crawl.
func Open(cfg Config) (o Outputs, err error) {
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

// Sync returns when all that was written down is on the disk. A crash may repeat
// what was recorded of a visit, and must not miss it: see bolt.Options.BeforeWrite.
func (o Outputs) Sync() error {
	return errors.Join(o.JSONL.Sync(), o.Archive.Sync(), o.Ledger.Sync())
}

// Close ends what was written down.
func (o Outputs) Close() error {
	return errors.Join(o.Ledger.Close(), o.Archive.Close(), o.JSONL.Close())
}

// DurableExtents returns how much of each file is on the disk: see bolt.Options.ListOutputFiles.
func (o Outputs) DurableExtents(d datadir.StateDir) (files []bolt.OutputFileExtent) {
	if o.JSONL == nil {
		return nil
	}
	if serial, size, ok := o.JSONL.file.durableExtent(); ok {
		files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(o.JSONL.file.name), Serial: serial, SyncedSize: size})
	}
	if o.Archive != nil {
		if e := o.Archive.archive.DurableExtent(); e.FileName != "" {
			files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(o.Archive.dirPath), Name: e.FileName, SyncedSize: e.Size})
		}
	}
	if o.Ledger != nil {
		if e := o.Ledger.ledger.DurableExtent(); e.SegmentSerial != 0 {
			files = append(files, bolt.OutputFileExtent{Path: d.PathToRecord(d.Path(datadir.LedgerDir)), Serial: int64(e.SegmentSerial), SyncedSize: e.Size})
		}
	}
	return files
}
