package engine

import (
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// NewSinksConfig returns which outputs a project writes. The caller adds how they are opened:
// resume, StartFresh, durable, stdout, log, OnDiskFull. NewSinksConfig reads the key of the ledger.
func NewSinksConfig(p *project.Project, c *confine.Paths) (sinks.Config, error) {
	out := &p.Output
	cfg := sinks.Config{
		StateDir: datadir.StateDir(p.Store.Path), ProductToken: p.Agent.Product, FileMode: out.FileModeBits(),
		JSONLPath: out.JSONL, JSONLMaxFileBytes: int64(out.JSONLMaxFileSize), WriteBodies: out.WriteBodies, Confinement: c,
	}
	if out.WARCDir != "" {
		cfg.WARC = newWARCConfig(p)
	}
	if !out.WriteLedger {
		return cfg, nil
	}
	cfg.Ledger = &ledger.Config{
		MaxSegmentSize: int64(out.LedgerMaxFileSize), CheckpointInterval: time.Duration(out.LedgerCheckpointInterval), RunStart: NewLedgerRunStart(p),
	}
	if name := out.LedgerKeyFile; name != "" {
		var err error
		if cfg.Ledger.SigningKey, err = inputfile.ReadPrivateKey(c.OpenInput, name, ledger.ParsePrivateKey); err != nil {
			return sinks.Config{}, usage.Errorf("output.ledger_key: %w", err)
		}
	}
	return cfg, nil
}

// newWARCConfig returns where the WARC files of a project are, and what their first records say.
func newWARCConfig(p *project.Project) *warc.Config {
	info := []warc.Field{
		{Name: "software", Value: "decorum/" + decorum.Version() + " (https://" + decorum.ModulePath + ")"},
		{Name: "operator", Value: p.Agent.Contact},
		{Name: "http-header-user-agent", Value: p.UserAgent()},
		{Name: "robots", Value: "obeyed (RFC 9309, dialect " + p.Robots.Dialect + ")"},
	}
	if p.Name != "" {
		info = append(info, warc.Field{Name: "isPartOf", Value: p.Name})
	}
	return &warc.Config{Dir: p.Output.WARCDir, FilePrefix: p.Name, MaxFileSize: int64(p.Output.WARCMaxFileSize), WarcinfoFields: info}
}

// NewLedgerRunStart returns what a project's records are made by.
func NewLedgerRunStart(p *project.Project) ledger.RunStart {
	agent, _ := p.RobotsAgent() // it has been checked
	run := crawler.NewLedgerRunStart(p.PolitenessPolicy())
	run.Project, run.UserAgent, run.ProductToken = p.Name, p.UserAgent(), p.Agent.Product
	run.FallbackTokens, run.IgnoresStarRules = agent.FallbackTokens(), agent.IgnoresStarRules()
	run.RobotsDialect, run.RobotsExtensions, run.Purposes = p.Robots.Dialect, p.Robots.ObeyExtensions, p.Robots.Purposes
	run.RecordsRefusals = p.Output.RecordRefusalsInLedger
	run.SharedCrawl = len(p.Store.Redis.Addresses) > 0
	return run
}
