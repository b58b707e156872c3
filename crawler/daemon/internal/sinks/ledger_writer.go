package sinks

import (
	"context"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A LedgerWriter is the crawl's Ledger. The operating system has a record before its request is sent, and
// the disk has it before the visit is acked (see bolt.Options.BeforeWrite). While the disk is full, all
// records wait.
type LedgerWriter struct {
	ledger *ledger.Ledger
	diskFullRetrier
}

// openLedgerWriter opens the ledger of a crawl, or returns nil if the crawl writes none. The caller has
// locked the crawl's directory.
func openLedgerWriter(cfg *Config) (*LedgerWriter, error) {
	if cfg.Ledger == nil {
		return nil, nil
	}
	ledgerConfig := *cfg.Ledger
	ledgerConfig.Dir, ledgerConfig.FileMode = cfg.StateDir.Path(datadir.LedgerDir), cfg.FileMode
	ledgerConfig.OnRecovered = func(bytesCut int64) {
		cfg.Log.Info("a ledger that was left open has been closed", "bytes_cut", bytesCut)
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

// Close ends the run in the ledger, and syncs and closes its file: see Outputs.Close.
func (p *LedgerWriter) Close() error {
	if p == nil {
		return nil
	}
	return p.ledger.Close()
}
