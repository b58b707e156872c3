package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/disk"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/ledger"
)

// A ledgerWriter is the crawl's Ledger. A record is with the operating system before its
// request is sent, and on the disk before what came of it is acked (see
// bolt.Options.BeforeWrite). While there is no room for one, all wait.
type ledgerWriter struct {
	ledger     *ledger.Ledger
	log        *slog.Logger
	onDiskFull func(error) // see retryWhileDiskFull
	retryMu    sync.Mutex
}

// openLedgerWriter opens the ledger of a project, nil if it has none. The project's
// directory is locked.
func openLedgerWriter(p project.Project, opts outputOptions) (*ledgerWriter, error) {
	if !p.Output.WriteLedger {
		return nil, nil
	}
	cfg := ledger.Config{
		Dir: datadir.StateDir(p.Store.Path).Path(datadir.LedgerDir), MaxSegmentSize: int64(p.Output.LedgerMaxFileSize),
		CheckpointInterval: time.Duration(p.Output.LedgerCheckpointInterval), RunStart: newLedgerRunStart(&p), FileMode: p.Output.FileModeBits(),
		OnRecovered: func(bytesCut int64) {
			opts.log.Info("the ledger that was left open has been closed", "bytes_cut", bytesCut)
		},
	}
	cfg.LastDurableExtent = opts.durable.LedgerExtent(cfg.Dir)
	if name := p.Output.LedgerKeyFile; name != "" {
		var err error
		if cfg.SigningKey, err = inputfile.ReadPrivateKey(opts.pathConfinement.openInput, name, ledger.ParsePrivateKey); err != nil {
			return nil, usage.Errorf("output.ledger_key: %w", err)
		}
	}
	l, err := ledger.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &ledgerWriter{ledger: l, log: opts.log, onDiskFull: opts.onDiskFull}, nil
}

// newLedgerRunStart returns what a project's records are made by.
func newLedgerRunStart(p *project.Project) ledger.RunStart {
	agent, _ := p.RobotsAgent() // it has been checked
	run := crawler.NewLedgerRunStart(p.PolitenessPolicy())
	run.Project, run.UserAgent, run.ProductToken = p.Name, p.UserAgent(), p.Agent.Product
	run.FallbackTokens, run.IgnoresStarRules = agent.FallbackTokens(), agent.IgnoresStarRules()
	run.RobotsDialect, run.RobotsExtensions, run.Purposes = p.Robots.Dialect, p.Robots.ObeyExtensions, p.Robots.Purposes
	run.RecordsRefusals = p.Output.RecordRefusalsInLedger
	run.SharedCrawl = len(p.Store.Redis.Addresses) > 0
	return run
}

// Append implements crawler.Ledger.
func (p *ledgerWriter) Append(ctx context.Context, r *ledger.Record) (n int64, err error) {
	err = p.retryWhileDiskFull(ctx, func() (err error) { n, err = p.ledger.Append(r); return err })
	return n, err
}

// HasRobotsFile implements crawler.Ledger.
func (p *ledgerWriter) HasRobotsFile(hash string) bool { return p.ledger.HasRobotsFile(hash) }

// StoreRobotsFile implements crawler.Ledger.
func (p *ledgerWriter) StoreRobotsFile(ctx context.Context, hash string, body []byte) error {
	return p.retryWhileDiskFull(ctx, func() error { return p.ledger.StoreRobotsFile(hash, body) })
}

// retryWhileDiskFull writes, and while there is no room for that waits, one for all.
func (p *ledgerWriter) retryWhileDiskFull(ctx context.Context, write func() error) error {
	err := write()
	if !disk.IsFull(err) {
		return err
	}
	p.retryMu.Lock()
	defer p.retryMu.Unlock()
	return retryWhileDiskFull(ctx, p.log, p.onDiskFull, write)
}

// Sync returns when all records that were written before are on the disk.
func (p *ledgerWriter) Sync() error {
	if p == nil {
		return nil
	}
	return p.ledger.Sync()
}

// Close ends the run in the ledger. It comes after the state has been closed, which
// has it synced.
func (p *ledgerWriter) Close() error {
	if p == nil {
		return nil
	}
	return p.ledger.Close()
}
