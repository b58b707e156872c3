package engine

import (
	"crypto/x509"
	"fmt"
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
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/inputfile"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/politeness"
	"github.com/decorum-crawler/decorum/storage"
	"github.com/decorum-crawler/decorum/storage/ledger"
	"github.com/decorum-crawler/decorum/storage/warc"
)

// maxPolitenessDelay returns the longest time that a crawl waits for its next URL: the longest delay that
// its policy can give a host, by itself or at the host's request.
func maxPolitenessDelay(p politeness.Policy) time.Duration {
	p = p.WithDefaults()
	wait := max(p.MaxRetryAfter, p.MaxCrawlDelay, p.MaxBackoff, p.MaxLearnedDelay, p.Delay)
	for _, o := range p.HostOverrides {
		if o.Delay != nil {
			wait = max(wait, *o.Delay)
		}
	}
	return wait
}

// crawlerSettings returns the crawler.Settings of a project.
func crawlerSettings(p *project.Project) (crawler.Settings, error) {
	revisit, err := p.RevisitPolicy()
	return crawler.Settings{
		Workers: p.Limits.Workers, MaxPages: int64(p.Limits.Pages), MaxReceivedBytes: int64(p.Limits.Bytes),
		MaxPagesPerHost: p.Scope.MaxPagesPerHost, MaxBytesPerHost: int64(p.Scope.MaxBytesPerHost),
		MaxDuplicateLinksPerHost: p.Scope.MaxDuplicateLinks,
		TDMRepTTL:                time.Duration(p.Robots.MaxTTL),
		ProductToken:             p.Agent.Product, NoSitemaps: !p.Discover.Sitemaps,
		TrySitemapXML:  p.Discover.TrySitemapXML,
		IgnoreNoFollow: !p.Robots.ObeyMetaTags,
		MaxLinks:       p.Discover.MaxLinks, MaxSitemapsPerHost: p.Discover.MaxSitemapsPerHost,
		MaxSitemapBody:         int64(p.Fetch.MaxSitemapBody),
		RecordRefusalsInLedger: p.Output.RecordRefusalsInLedger,
		FollowedLinkKinds: crawler.FollowedLinkKinds{ // for pages without a handler
			NoLinks: !p.Discover.Links, NoFeeds: !p.Discover.Feeds || p.Handler != "",
			NoCanonical: !p.Discover.Canonical,
			Forms:       p.Discover.Forms,
			Images:      p.Discover.Images,
			Resources:   p.Discover.Resources,
		},
		Revisit:          revisit,
		ReuseVisitMemory: true, // hooks and recorders of the daemon keep no body
	}, err
}

// NewFetchers returns the fetcher of a project for http and https, and a fetcher for all schemes. Cookies
// are stored in notes. The fetcher for ftp uses connections of web, so that the same addresses are
// refused; with a proxy, ftp is not fetched. transport replaces the network unless it is nil. Of shared
// it uses BodyMemory and IdleConns. Key files are opened within the confinement c.
func NewFetchers(
	p *project.Project, c *confine.ProjectAccess, notes storage.Notes, transport http.RoundTripper,
	shared SharedResources,
) (web *httpfetch.Fetcher, all crawler.MultiSchemeFetcher, err error) {
	bodyMemory := shared.BodyMemory
	if bodyMemory == nil {
		bodyMemory = bodymem.NewDefault()
	}
	cfg := httpfetch.Config{
		UserAgent: p.UserAgent(), Timeout: time.Duration(p.Fetch.Timeout),
		FirstByteTimeout: time.Duration(p.Fetch.FirstByteTimeout),
		MaxHeaderBytes:   int64(p.Fetch.MaxHeader), MaxBody: int64(p.Fetch.MaxBody), ContentTypes: p.Fetch.ContentTypes,
		Headers: make(http.Header, len(p.Fetch.Headers)), AllowPrivate: p.Fetch.AllowPrivate,
		DNSTTL:           time.Duration(p.Fetch.DNSTTL),
		CaptureExchanges: p.Output.WARCDir != "", ConnectToRules: p.Fetch.ConnectToRules, Proxy: p.Fetch.Proxy,
		Transport: transport, BodyMemory: bodyMemory,
		IdleConns: shared.IdleConns, MaxIdleTime: time.Duration(p.Fetch.Connections.IdleTimeout),
		MaxTLSSessions: p.Fetch.Connections.TLSSessions, HTTP2: p.Fetch.Connections.HTTP2,
		NoPostQuantum: !p.OffersPostQuantum(),
	}
	// In the project file, 0 means none, and not the default.
	if cfg.DNSTTL == 0 {
		cfg.DNSTTL = -1
	}
	if cfg.MaxIdleTime == 0 {
		cfg.MaxIdleTime = -1
	}
	if cfg.MaxTLSSessions == 0 {
		cfg.MaxTLSSessions = -1
	}
	for name, value := range p.Fetch.Headers {
		cfg.Headers.Set(name, value)
	}
	if cfg.Signer, err = p.Agent.Signature.NewSigner(c.OpenInput); err != nil {
		return nil, nil, err
	}
	if p.Fetch.CAFile != "" {
		if cfg.RootCAs, err = systemAndOwnCAs(c.OpenInput, p.Fetch.CAFile); err != nil {
			return nil, nil, usage.Errorf("fetch.ca_file: %w", err)
		}
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
			Timeout: time.Duration(p.Fetch.Timeout), MaxBody: int64(p.Fetch.MaxBody),
			ContentTypes: p.Fetch.ContentTypes,
			BodyMemory:   bodyMemory,
		})
	}
	return web, all, err
}

// systemAndOwnCAs returns the system's certificate authorities and those in a file.
func systemAndOwnCAs(open inputfile.OpenFunc, name string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("the system's certificates cannot be read: %w", err)
	}
	return pool, inputfile.AddCertificates(open, name, pool)
}

// NewSinksConfig returns the configuration of the outputs that a project writes. The caller sets Resume,
// StartFresh, Durable, Stdout, Log and OnDiskFull. NewSinksConfig reads the signing key of the ledger
// within the confinement c.
func NewSinksConfig(p *project.Project, c *confine.ProjectAccess) (sinks.Config, error) {
	out := &p.Output
	cfg := sinks.Config{
		StateDir: datadir.StateDir(p.Store.Path), ProductToken: p.Agent.Product, FileMode: out.FileModeBits(),
		JSONLPath: out.JSONL, JSONLMaxFileBytes: int64(out.JSONLMaxFileSize),
		WriteBodies: out.WriteBodies, WriteOutlinks: out.WriteOutlinks, Confinement: c,
	}
	if out.WARCDir != "" {
		cfg.WARC = newWARCConfig(p)
	}
	if !out.WriteLedger {
		return cfg, nil
	}
	// The ledger is the only output that needs a file: its key.
	cfg.Ledger = &ledger.Config{
		MaxSegmentSize: int64(out.LedgerMaxFileSize), CheckpointInterval: time.Duration(out.LedgerCheckpointInterval),
		RunStart: NewLedgerRunStart(p),
	}
	if name := out.LedgerKeyFile; name != "" {
		var err error
		if cfg.Ledger.SigningKey, err = inputfile.ReadPrivateKey(c.OpenInput, name,
			ledger.ParsePrivateKey); err != nil {
			return sinks.Config{}, usage.Errorf("output.ledger_key: %w", err)
		}
	}
	return cfg, nil
}

// newWARCConfig returns the configuration of a project's WARC files, with the fields of their warcinfo
// records.
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
	return &warc.Config{Dir: p.Output.WARCDir, FilePrefix: p.Name,
		MaxFileSize: int64(p.Output.WARCMaxFileSize), WarcinfoFields: info}
}

// NewLedgerRunStart returns the record with which a run of project p begins in the ledger: the identity,
// the policy and the robots.txt settings by which its verdicts can be derived again.
func NewLedgerRunStart(p *project.Project) ledger.RunStart {
	agent, _ := p.RobotsAgent() // validated with the project
	run := crawler.NewLedgerRunStart(p.PolitenessPolicy())
	run.Project, run.UserAgent, run.ProductToken = p.Name, p.UserAgent(), p.Agent.Product
	run.FallbackTokens, run.IgnoresStarRules = agent.FallbackTokens(), agent.IgnoresStarRules()
	run.RobotsDialect, run.RobotsExtensions, run.Purposes = p.Robots.Dialect, p.Robots.ObeyExtensions, p.Robots.Purposes
	run.RecordsRefusals = p.Output.RecordRefusalsInLedger
	run.SharedCrawl = len(p.Store.Redis.Addresses) > 0
	return run
}
