package sinks

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/usage"
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

// openJSONLAndMoveOldIfFresh opens the file of lines. If the crawl starts afresh, it moves an
// earlier crawl out of the way after it has opened a file that the user chose: if that
// file cannot be opened, nothing is moved.
func openJSONLAndMoveOldIfFresh(cfg *Config) (out *JSONLRecorder, err error) {
	dir := cfg.StateDir
	if cfg.JSONLPath != "" {
		if dir.IsOwnStateFile(cfg.JSONLPath) {
			return nil, usage.Errorf("--output: %s is a file of the crawl's own state; name another", cfg.JSONLPath)
		}
		if out, err = OpenJSONLRecorder(*cfg); err != nil {
			return nil, err
		}
	}
	if cfg.StartFresh {
		var rotated []string
		if rotated, err = rotatedFileNames(dir.Path(datadir.OutputFile)); err == nil {
			err = dir.MoveOldCrawl(time.Now(), rotated)
		}
	}
	if out == nil && err == nil {
		ownFile := *cfg
		ownFile.Confinement, ownFile.JSONLPath = nil, dir.Path(datadir.OutputFile)
		out, err = OpenJSONLRecorder(ownFile)
	}
	if err != nil && out != nil {
		return nil, errors.Join(err, out.Close())
	}
	if out == nil {
		return nil, err
	}
	if cfg.WriteBodies {
		if out.bodies, err = openBodyStore(dir.Path(datadir.BodiesDir), cfg.FileMode); err != nil {
			return nil, errors.Join(err, out.Close())
		}
	}
	return out, nil
}

// A LedgerWriter is the crawl's Ledger. A record is with the operating system before its
// request is sent, and on the disk before what came of it is acked (see
// bolt.Options.BeforeWrite). While there is no room for one, all wait.
type LedgerWriter struct {
	ledger *ledger.Ledger
	diskFullRetrier
}

// openLedgerWriter opens the ledger of a crawl; nil if the crawl has none. The crawl's
// directory is locked.
func openLedgerWriter(cfg *Config) (*LedgerWriter, error) {
	if cfg.Ledger == nil {
		return nil, nil
	}
	ledgerConfig := *cfg.Ledger
	ledgerConfig.Dir, ledgerConfig.FileMode = cfg.StateDir.Path(datadir.LedgerDir), cfg.FileMode
	ledgerConfig.OnRecovered = func(bytesCut int64) {
		cfg.Log.Info("the ledger that was left open has been closed", "bytes_cut", bytesCut)
	}
	durable := cfg.Durable.Find(ledgerConfig.Dir)
	ledgerConfig.LastDurableExtent = ledger.DurableExtent{SegmentSerial: int(durable.Serial), Size: durable.SyncedSize}
	l, err := ledger.Open(ledgerConfig)
	if err != nil {
		return nil, err
	}
	return &LedgerWriter{ledger: l, diskFullRetrier: diskFullRetrier{log: cfg.Log, onDiskFull: cfg.OnDiskFull}}, nil
}

// Append implements crawler.Ledger.
func (p *LedgerWriter) Append(ctx context.Context, r *ledger.Record) (n int64, err error) {
	err = p.retryOneForAll(ctx, func() (err error) { n, err = p.ledger.Append(r); return err })
	return n, err
}

// HasRobotsFile implements crawler.Ledger.
func (p *LedgerWriter) HasRobotsFile(hash string) bool { return p.ledger.HasRobotsFile(hash) }

// StoreRobotsFile implements crawler.Ledger.
func (p *LedgerWriter) StoreRobotsFile(ctx context.Context, hash string, body []byte) error {
	return p.retryOneForAll(ctx, func() error { return p.ledger.StoreRobotsFile(hash, body) })
}

// Sync returns when all records that were written before are on the disk.
func (p *LedgerWriter) Sync() error {
	if p == nil {
		return nil
	}
	return p.ledger.Sync()
}

// Close ends the run in the ledger. It comes after the state has been closed, which
// has it synced.
func (p *LedgerWriter) Close() error {
	if p == nil {
		return nil
	}
	return p.ledger.Close()
}

// diskFullRetryInterval is how often a write is tried again that found no room.
const diskFullRetryInterval = time.Second

// A diskFullRetrier has writes wait while the disk is full.
type diskFullRetrier struct {
	log        *slog.Logger // nil: slog.Default
	onDiskFull func(error)  // called with the error when a wait begins, with nil when it ends; may be nil
	mu         sync.Mutex   // held by the one that waits for all: see retryOneForAll
}

// retry calls write. While write fails for lack of room, retry waits and calls it again, until ctx
// is done.
func (d *diskFullRetrier) retry(ctx context.Context, write func() error) error {
	log, onDiskFull := cmp.Or(d.log, slog.Default()), d.onDiskFull
	if onDiskFull == nil {
		onDiskFull = func(error) {}
	}
	for isWaiting := false; ; isWaiting = true {
		err := write()
		if err == nil || !disk.IsFull(err) || ctx.Err() != nil {
			if isWaiting {
				onDiskFull(nil)
			}
			if isWaiting && err == nil {
				log.Info("the crawl goes on: the output can be written again")
			}
			return err
		}
		if !isWaiting {
			log.Error("the crawl pauses: the output cannot be written; it goes on by itself when there is room", "error", err)
			onDiskFull(err)
		}
		select {
		case <-time.After(diskFullRetryInterval):
		case <-ctx.Done():
		}
	}
}

// retryOneForAll is retry for writes of several goroutines: while there is no room, one waits for all.
func (d *diskFullRetrier) retryOneForAll(ctx context.Context, write func() error) error {
	err := write()
	if !disk.IsFull(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.retry(ctx, write)
}
