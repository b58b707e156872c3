package engine

import (
	"net/http"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/bodymem"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/confine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/sinks"
	"github.com/decorum-crawler/decorum/crawler/ftpfetch"
	"github.com/decorum-crawler/decorum/crawler/httpfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// maxPolitenessDelay returns for how long a crawl waits for the next URL: as long as its
// own policy makes a host rest, or a host may ask for.
func maxPolitenessDelay(p politeness.Policy) time.Duration {
	p = p.WithDefaults()
	wait := max(p.MaxRetryAfter, p.MaxCrawlDelay, p.MaxBackoff, p.Delay)
	for _, o := range p.HostOverrides {
		if o.Delay != nil {
			wait = max(wait, *o.Delay)
		}
	}
	return wait
}

func crawlerSettings(p *project.Project) (crawler.Settings, error) {
	mode, err := frontier.ParseRevisitMode(p.Revisit.Mode)
	return crawler.Settings{
		Workers: p.Limits.Workers, MaxPages: int64(p.Limits.Pages), MaxReceivedBytes: int64(p.Limits.Bytes),
		MaxPagesPerHost: p.Scope.MaxPagesPerHost, MaxBytesPerHost: int64(p.Scope.MaxBytesPerHost),
		TDMRepTTL:    time.Duration(p.Robots.MaxTTL),
		ProductToken: p.Agent.Product, NoSitemaps: !p.Discover.Sitemaps, IgnoreNoFollow: !p.Robots.ObeyMetaTags,
		MaxLinks: p.Discover.MaxLinks, MaxSitemapsPerHost: p.Discover.MaxSitemapsPerHost, MaxSitemapBody: int64(p.Fetch.MaxSitemapBody),
		RecordRefusalsInLedger: p.Output.RecordRefusalsInLedger,
		FollowedLinkKinds: crawler.FollowedLinkKinds{ // where no callbacks decide
			NoLinks: !p.Discover.Links, NoFeeds: !p.Discover.Feeds || p.Handler != "", NoCanonical: !p.Discover.Canonical,
			Images: p.Discover.Images,
		},
		Revisit: frontier.RevisitPolicy{
			Mode: mode, Interval: time.Duration(p.Revisit.Interval),
			MinInterval: time.Duration(p.Revisit.MinInterval), MaxInterval: time.Duration(p.Revisit.MaxInterval),
		},
	}, err
}

// NewFetchers returns a fetcher of the web for the project, whose cookies are kept in notes, and a
// fetcher of all schemes: beside that for http and https what fetches ftp, over connections
// that web makes, so that what it refuses is refused. Where there is a proxy, nothing
// fetches ftp. Requests are sent over transport; nil: over the network. A nil bodyMemory is
// the default. Key files are opened within c.
func NewFetchers(
	p *project.Project, c *confine.ProjectAccess, notes storage.Notes, transport http.RoundTripper, bodyMemory *bodymem.Budget,
) (web *httpfetch.Fetcher, all crawler.MultiSchemeFetcher, err error) {
	if bodyMemory == nil {
		bodyMemory = bodymem.NewDefault()
	}
	cfg := httpfetch.Config{
		UserAgent: p.UserAgent(), From: httpheader.ContactMail(p.Agent.Contact), Timeout: time.Duration(p.Fetch.Timeout), FirstByteTimeout: time.Duration(p.Fetch.FirstByteTimeout),
		MaxHeaderBytes: int64(p.Fetch.MaxHeader), MaxBody: int64(p.Fetch.MaxBody), ContentTypes: p.Fetch.ContentTypes,
		Headers: make(http.Header, len(p.Fetch.Headers)), AllowPrivate: p.Fetch.AllowPrivate, DNSTTL: time.Duration(p.Fetch.DNSTTL),
		CaptureExchanges: p.Output.WARCDir != "", ConnectToRules: p.Fetch.ConnectToRules, Proxy: p.Fetch.Proxy,
		Transport: transport, BodyMemory: bodyMemory,
	}
	if cfg.DNSTTL == 0 {
		cfg.DNSTTL = -1
	}
	for name, value := range p.Fetch.Headers {
		cfg.Headers.Set(name, value)
	}
	if cfg.Signer, err = p.Agent.Signature.NewSigner(c.OpenInput); err != nil {
		return nil, nil, err
	}
	if p.Fetch.Cookies {
		cfg.Cookies = httpfetch.NewCookies(notes)
	}
	if web, err = httpfetch.New(cfg); err != nil {
		return nil, nil, err
	}
	all = crawler.MultiSchemeFetcher{"http": web, "https": web}
	if p.Fetch.Proxy == "" {
		all["ftp"], err = ftpfetch.New(ftpfetch.Config{
			Dialer: web, Password: strings.TrimPrefix(p.Agent.Contact, "mailto:"),
			Timeout: time.Duration(p.Fetch.Timeout), MaxBody: int64(p.Fetch.MaxBody), ContentTypes: p.Fetch.ContentTypes,
			BodyMemory: bodyMemory,
		})
	}
	return web, all, err
}

// NewSinksConfig returns which outputs a project writes. The caller adds how they are opened:
// resume, StartFresh, durable, stdout, log, OnDiskFull. NewSinksConfig reads the key of the ledger.
func NewSinksConfig(p *project.Project, c *confine.ProjectAccess) (sinks.Config, error) {
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
