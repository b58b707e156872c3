package crawl

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/storage/bolt"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A ledgerWriter is the crawler.Ledger of a Crawl. It does not wait for space on a full disk: the run
// ends.
type ledgerWriter struct{ *ledger.Ledger }

// openLedgerIfEnabled opens the ledger if cfg.KeepLedger is set. The caller has locked StateDir by
// opening a store in it.
func (c *Crawl) openLedgerIfEnabled(cfg Config) error {
	if !cfg.KeepLedger {
		return nil
	}
	run := crawler.NewLedgerRunStart(cfg.Policy)
	run.UserAgent, run.ProductToken, run.RecordsRefusals =
		cfg.FetchConfig.UserAgent, cfg.Settings.ProductToken, cfg.Settings.RecordRefusalsInLedger
	run.FallbackTokens, run.IgnoresStarRules =
		cfg.RobotsConfig.Agent.FallbackTokens(), cfg.RobotsConfig.Agent.IgnoresStarRules()
	run.RobotsDialect, run.RobotsExtensions, run.Purposes =
		cfg.RobotsConfig.Dialect.String(), !cfg.RobotsConfig.NoExtensions, cfg.RobotsConfig.Purposes
	extent, err := readDurableLedgerExtent(cfg.StateDir)
	if err != nil {
		return err
	}
	l, err := ledger.Open(ledger.Config{Dir: filepath.Join(cfg.StateDir, ledgerDir),
		RunStart: run, LastDurableExtent: extent,
		OnRecovered: func(cut int64) {
			cfg.Log.Info("the ledger that was left open has been closed", "bytes_cut", cut)
		}})
	if err == nil {
		c.ledger = &ledgerWriter{l}
	}
	return err
}

// ledgerDir is the ledger's directory inside StateDir, and its name among the output files in the
// store.
const ledgerDir = "ledger"

// readDurableLedgerExtent returns how much of the ledger in dir is on disk, according to the store.
func readDurableLedgerExtent(dir string) (extent ledger.DurableExtent, err error) {
	files, _, err := bolt.ReadOutputFileRecords(filepath.Join(dir, "frontier.db"))
	for _, f := range files {
		if f.Path == ledgerDir {
			extent = ledger.DurableExtent{SegmentSerial: int(f.Serial), Size: f.SyncedSize}
		}
	}
	return extent, err
}

// durableFileExtents returns how much of the ledger is on disk, for bolt.Options.ListOutputFiles.
func (p *ledgerWriter) durableFileExtents() []bolt.OutputFileExtent {
	if p == nil {
		return nil
	}
	e := p.DurableExtent()
	if e.SegmentSerial == 0 {
		return nil // the ledger is closed
	}
	return []bolt.OutputFileExtent{{Path: ledgerDir, Serial: int64(e.SegmentSerial), SyncedSize: e.Size}}
}

// Append implements crawler.Ledger.
func (p *ledgerWriter) Append(_ context.Context, r *ledger.Record) (int64, error) {
	return p.Ledger.Append(r)
}

// StoreRobotsFile implements crawler.Ledger.
func (p *ledgerWriter) StoreRobotsFile(_ context.Context, hash string, body []byte) error {
	return p.Ledger.StoreRobotsFile(hash, body)
}

// sync returns when all records appended so far are on disk. A nil p is valid.
func (p *ledgerWriter) sync() error {
	if p == nil {
		return nil
	}
	return p.Sync()
}

// close ends the run in the ledger and closes its files. A nil p is valid.
func (p *ledgerWriter) close() error {
	if p == nil {
		return nil
	}
	return p.Close()
}

// errLedgerNeedsDir is the error of KeepLedger without StateDir.
var errLedgerNeedsDir = errors.New("KeepLedger needs a StateDir")
